#!/usr/bin/env python3
"""What slow links between two domains cost under all-reduce and under Gaia: a step, and the time until a
model is good.

    bench/synchronisation/slow_domains.py --data DIR [--hidden 256] [--bin build/bin] [--runs 3] [--json]

DIR holds mnist.tar.xz. Real jobs of four workers on this machine, two in each domain, train a perceptron
with so many hidden units (256: 203,530 parameters) on 15,360 digits by SGD with momentum, in steps of 256,
until 2,000 others are recognised with 92 %, looked at after each epoch of 60 steps. Between the domains
[[inject]] makes links of 100 Mbit/s in each direction, 50 ms one way. All-reduce and gaia, with a whole
exchange in every 20th step, in turn, so many times.

What must pass is computed beside it: the bytes between the domains at the speed of the link, and two
messages that follow one another, the sum or the updates of the two domains' leaders, and the slots.
"""
import json
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from runs import finish, in_place, options, progress, spread, spread_text  # noqa: E402
from synchronisation.sync_quality import JOB, write_digits  # noqa: E402

SYNCS = ("allreduce", "gaia")
MESSAGES = 2
RECORDS, BATCH, EPOCHS, TARGET = 15_360, 256, 5, 0.92
LATENCY_S, BYTES_PER_S = 0.050, 12.5e6


def two_domains(workers):
    """The first and the second half of so many workers, with these links between them."""
    ids = [f"w{i}" for i in range(workers)]
    half = workers // 2
    return f"""
[[domain]]
name = "east"
workers = {json.dumps(ids[:half])}
[[domain]]
name = "west"
workers = {json.dumps(ids[half:])}
[[inject]]
domain = "east"
to_domain = "west"
both_ways = true
latency = "{1000 * LATENCY_S:.0f}ms"
bandwidth = "{BYTES_PER_S:.0f}B"
"""


def job(data, sync, seed, hidden):
    own = "\ngaia = { whole_every = 20 }" if sync == "gaia" else ""
    return JOB.format(epochs=EPOCHS, seed=seed, workers=4, data=data, batch=BATCH, model="mlp",
                      sync=sync, optimizer="sgd", lr=0.1,
                      trainer=f"hidden = [{hidden}]\nmomentum = 0.9" + own) + two_domains(4)


def reached(summary):
    """Seconds of training until the target, and the epochs; None: it was not reached."""
    seconds = 0
    for i, epoch in enumerate(summary["epochs"], 1):
        seconds += epoch["seconds"]
        if epoch["eval"]["accuracy"] >= TARGET:
            return seconds, i
    return None


def measure(args, place):
    data = write_digits(args.data, place.directory, RECORDS, 2000)
    found = {sync: {"ms": [], "kb": [], "seconds": [], "epochs": [], "accuracy": [], "sent": []}
             for sync in SYNCS}
    exact = True
    for turn in range(args.runs):
        for sync in SYNCS:
            run = place.run(f"{turn}-{sync}", job(data, sync, 5 + turn, args.hidden))
            steps = EPOCHS * RECORDS / BATCH
            row, s = found[sync], run.summary
            row["ms"].append(1000 * s["training_seconds"] / steps)
            # Both ways; each direction has a link of its own.
            row["kb"].append(sum(t["sent_bytes"] for t in s["traffic"]["domains"]
                                 if t["from_domain"] != t["to_domain"]) / 2 / steps / 1000)
            at = reached(s)
            row["seconds"].append(at[0] if at else float("inf"))
            row["epochs"].append(at[1] if at else EPOCHS + 1)
            row["accuracy"].append(s["epochs"][-1]["eval"]["accuracy"])
            shares = [w["updates"]["sent_share"] for w in s["workers"] if "updates" in w]
            row["sent"].append(statistics.mean(shares) if shares else 1)
            exact = exact and run.exact(EPOCHS, RECORDS)
            run.forget()
            progress(f"{sync}: {row['ms'][-1]:.1f} ms a step, {row['seconds'][-1]:.1f} s to {TARGET}")
    result = {sync: {key: spread(values) for key, values in row.items()}
              for sync, row in found.items()}
    for sync, row in result.items():
        row["must_ms"] = 1000 * (MESSAGES * LATENCY_S
                                 + 1000 * row["kb"]["median"] / BYTES_PER_S)
    good = exact and all(result["gaia"][key]["median"] < result["allreduce"][key]["median"]
                         for key in ("ms", "kb", "seconds"))
    ratios = [a / g for a, g in zip(found["allreduce"]["seconds"], found["gaia"]["seconds"])]
    return {"ratio": spread(ratios), "load": os.getloadavg()[0], "syncs": result, "exact": exact,
            "good": good}


def tell(result):
    for sync, row in result["syncs"].items():
        print(f"{sync}: {spread_text(row['ms'], '{:.1f}')} ms a step ({row['must_ms']:.1f} by bytes and "
              f"latencies), {spread_text(row['kb'], '{:.0f}')} KB each way, "
              f"{spread_text(row['seconds'], '{:.1f}')} s and {spread_text(row['epochs'], '{:.0f}')} "
              f"epochs to {TARGET:.0%}, {spread_text(row['accuracy'], '{:.4f}')} in the end, "
              f"{spread_text(row['sent'], '{:.3f}')} of the elements sent")
    print(f"all-reduce takes {spread_text(result['ratio'])} times as long as gaia to {TARGET:.0%}; load "
          f"average {result['load']:.1f}")
    print("every record counted once" if result["exact"] else "a record did not count once")


def main():
    parser = options(__doc__, runs=3)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="where the archive is")
    parser.add_argument("--hidden", type=int, default=256, help="hidden units (256)")
    args = parser.parse_args()
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
