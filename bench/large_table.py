#!/usr/bin/env python3
"""A table of ten million rows on parameter servers: trained, checkpointed and loaded in a job.

    bench/large_table.py [--rows 10000000] [--runs 3] [--every 5s] [--bin build/bin] [--json]

DeepFM with embeddings of 16 and Adagrad, two workers and two servers, `ps-asp`. With more processes
than cores, a pause would only show how cores are shared. Each category of each record is a new one,
so a file makes so many rows. The job trains the file sixteen times, in its order, in one epoch,
because a checkpoint is given up when an epoch ends. Once all rows exist, it goes on through three
checkpoints, is stopped, and is resumed: its servers load the last checkpoint, and it trains the
rest. For each run the program prints

    samples/s     while the rows are made, with all of them there, and after they were loaded
    pause         for which a server answered nobody for a checkpoint, at most (50 ms is asked for)
    checkpoint    seconds from one to the next, bytes
    loaded        seconds from `antdt run --resume` until it trains

The exit code is 1 if a pause was longer, if the embedding table has fewer rows (in the checkpoints,
or on the servers after loading), or if a record did not count exactly once. Three runs take six
minutes, 6 GB of memory and 8 GB of disk in $TMPDIR; the machine must be idle.
"""
import os
import re
import time

import clicks
from runs import finish, in_place, options, progress, spread, spread_text

import slices  # of the end-to-end tests, as the next
import tally

WIDTH, TIMES, CHECKPOINTS = 16, 16, 3
LONGEST_PAUSE_MS = 50
JOB = """
schema = 1
[job]
name = "large-table"
seed = 3
[roles.worker]
count = 2
[roles.server]
count = 2
[data]
format = "criteo"
paths = ["{data}/*.tsv"]
shuffle = "none"
hash_buckets = 1000000000
[batch]
global = 4096
adjust = "size"
[trainer]
model = "deepfm"
sync = "ps-asp"
optimizer = "adagrad"
lr = 1e-2
embedding_dim = {width}
[control]
solution = "none"
[checkpoint]
every = "{every}"
keep = 1
"""


def table_in(checkpoint):
    """The rows of the embedding table in a checkpoint, and the checkpoint's size in bytes."""
    rows, size = 0, 0
    for path in checkpoint.glob("slice-*.rows"):
        size += path.stat().st_size
        for width, state, count in slices.count_rows(path).values():
            if (width, state) == (WIDTH, WIDTH):
                rows += count
    return rows, size


def embeddings(status):
    """How many embeddings are on the servers now; each has a first-order weight in another row."""
    return sum(server["rows"] for server in status["servers"]) // 2


def stored(run):
    """The step of the newest complete checkpoint; 0: there is none."""
    found = run.directory / "checkpoints"
    names = [p.name for p in found.iterdir()] if found.exists() else []
    return max((int(m[1]) for m in (re.match(r"s(\d+)-", n) for n in names) if m), default=0)


def through_checkpoints(run, count):
    """Moments at which checkpoints were stored."""
    times, newest = [], stored(run)
    while len(times) < count:
        def another(_):
            return stored(run) > newest
        run.until(another, 120, "another checkpoint")
        newest = stored(run)
        times.append(time.monotonic())
    return times


def trains(run):
    first = run.until(lambda s: s["state"] == "training", 120, "a job that trains")
    began = first["samples_done"]
    return run.until(lambda s: s["samples_done"] > began, 120, "a job that trains")


def pauses_ms(servers):
    return {s["id"]: s["checkpoint_pause_us_max"] / 1000 for s in servers if s["checkpoints"] > 0}


def train(run, rows):
    """Runs the job until it is stopped with a checkpoint of all rows."""
    try:
        trains(run)
        began = time.monotonic()
        run.until(lambda s: embeddings(s) >= rows, 300, "all rows")
        full = time.monotonic()
        times = through_checkpoints(run, CHECKPOINTS + 1)
        before = run.until(lambda s: True, 10, "a status")
    finally:
        code = run.stop()
    if code != 75:
        raise SystemExit(f"the job ended with {code} before it was stopped: {run.directory}.log")
    stored_rows, size = table_in(tally.newest(run.directory))
    return {"making": run.speed(began, full), "full": run.speed(times[0], times[-1]),
            "rows": stored_rows, "bytes": size,
            "memory_bytes": sum(s["bytes"] for s in before["servers"]),
            "checkpoint_s": [b - a for a, b in zip(times, times[1:])],
            "pauses_ms": pauses_ms(before["servers"])}


def load(place, directory):
    """Trains the rest of its records from the stored checkpoint."""
    began = time.monotonic()
    run = place.resume(directory)
    try:
        trains(run)
        loaded = time.monotonic()
        status = run.until(lambda s: all(server["rows"] > 0 for server in s["servers"]), 10,
                           "what the servers hold")
        run.watch(2)
        speed = run.speed(loaded, time.monotonic())
        done = run.finished(600)
    finally:
        run.stop()
    return done, {"loaded_s": loaded - began, "loaded_rows": embeddings(status),
                  "loaded_speed": speed, "exact": done.exact(1, TIMES * place.records)}


def measure_one(args, place, number):
    run = place.start(f"run-{number}", JOB.format(
        every=args.every, width=WIDTH, data=place.data))
    found = train(run, args.rows)
    done, again = load(place, run.directory)
    done.forget()
    found.update(again)
    found["good"] = found["exact"] and min(found["rows"], found["loaded_rows"]) >= args.rows and \
        0 < max(found["pauses_ms"].values(), default=0) <= LONGEST_PAUSE_MS
    return found


def measure(args, place):
    # A few categories share a row.
    place.records = int(1.02 * args.rows / clicks.FIELDS) + 1
    place.data = place.directory / "data"
    place.data.mkdir()
    rng = clicks.seeded(9)
    clicks.write(place.data / "0.tsv", clicks.fresh(place.records, rng), rng)
    for n in range(1, TIMES):
        os.link(place.data / "0.tsv", place.data / f"{n}.tsv")
    runs = []
    for number in range(args.runs):
        runs.append(measure_one(args, place, number))
        progress(f"run {number + 1}: {runs[-1]}")
    return {"records": TIMES * place.records, "runs": runs,
            "good": all(run["good"] for run in runs)}


def tell(result):
    runs = result["runs"]

    def line(what, values, form, unit=""):
        print(f"{what:34} {spread_text(spread(list(values)), form)}{unit}")
    line("rows of the embeddings", (run["rows"] for run in runs), "{:,.0f}")
    line("... after they were loaded", (run["loaded_rows"] for run in runs), "{:,.0f}")
    line("memory of all rows", (run["memory_bytes"] / 1e9 for run in runs), "{:.2f}", " GB")
    line("while rows are made", (run["making"] for run in runs), "{:,.0f}", " samples/s")
    line("with all of them", (run["full"] for run in runs), "{:,.0f}", " samples/s")
    line("after they were loaded", (run["loaded_speed"] for run in runs), "{:,.0f}", " samples/s")
    line("longest pause of a server", (p for run in runs for p in run["pauses_ms"].values()),
         "{:.1f}", f" ms; asked for: {LONGEST_PAUSE_MS}")
    line("from checkpoint to checkpoint", (s for run in runs for s in run["checkpoint_s"]),
         "{:.1f}", " s")
    line("a checkpoint", (run["bytes"] / 1e9 for run in runs), "{:.2f}", " GB")
    line("loaded and training after", (run["loaded_s"] for run in runs), "{:.1f}", " s")
    print("each record once" if all(run["exact"] for run in runs) else
          "records did NOT count once")
    if not result["good"]:
        print("NOT what was asked for")


def main():
    parser = options(__doc__, runs=3)
    parser.add_argument("--rows", type=int, default=10**7, help="of the table (10,000,000)")
    parser.add_argument("--every", default="5s", help="between checkpoints")
    args = parser.parse_args()
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
