#!/usr/bin/env python3
"""How soon a job is as fast as before when one of its two parameter servers is killed.

    bench/lost_server.py [--runs 5] [--sync ps-asp] [--replicas 2,1] [--bin build/bin] [--json]

Four workers train `tally3`, whose record counts in three parameters on different servers; each
waits 10 ms per batch, so that speeds are equal on any machine. In one job with replicas and in one
without, a server is killed with SIGKILL `--runs` times. With replicas it is a primary, once every
server has its backup again. Without, it is s1, two seconds after a checkpoint (there is one every 5
s). The program prints the seconds from the kill

    back      until, over the next second, the speed is 0.9 of that before
    regained  until as many records are trained as then: without replicas all go back to a
              checkpoint

The goal is a median of at most 2 s with replicas. Then the jobs train the rest of their records.
Each record must have counted once according to the audit, and in each of its parameters in the
model. The exit code is 1 if that is not so, or if the goal is missed. Three minutes; the machine
should be idle.
"""
import os
import signal
import time

from runs import finish, in_place, options, progress, spread, spread_text

import slices  # of the end-to-end tests, as the next
import tally

ENOUGH, WINDOW_S, PARTS = 0.9, 1.0, 3
BEFORE_S, GIVE_UP_S = 3.0, 30.0
ALLOWED_S = 2.0
EACH = 3  # parameters of a record of tally3
EVERY_S = 5
RECORDS_A_KILL = 100_000  # more than are trained until the next
EXTRA = """
[roles.server]
count = 2
replicas = {replicas}
[failure]
budgets = {{ signal = 1000 }}
[checkpoint]
every = "{every}s"
"""


def job(sync, replicas, records):
    text = tally.job(workers=4, records=records, epochs=1, batch=96, delay="10ms",
                     extra=EXTRA.format(replicas=replicas, every=EVERY_S))
    return text.replace('model = "tally"', 'model = "tally3"').replace("allreduce", sync)


def await_whole(run, replicas):
    """Waits until a server can be lost again; returns the job's status."""
    if replicas > 1:
        return run.until(lambda s: s["state"] == "training" and sorted(
            server.get("role", "") for server in s["servers"]) ==
            ["backup", "backup", "primary", "primary"], 60, "a backup of each server")
    run.until(lambda s: s["state"] == "training", 60, "a job that trains")
    old = checkpoints(run)
    run.until(lambda s: checkpoints(run) - old, 60, "a checkpoint")
    return run.until(lambda s: s["state"] == "training", 60, "a job that trains")


def checkpoints(run):
    found = run.directory / "checkpoints"
    return {p.name for p in found.iterdir() if p.name.startswith("s")} if found.exists() else set()


def is_back(run, since, before):
    """Whether it is as fast as before from then on, all the time: where a server takes all back to
    a checkpoint, what is counted as trained falls, and leaps."""
    if run.seen[-1][0] < since + WINDOW_S:
        return False
    part = WINDOW_S / PARTS
    speeds = [run.speed(since + i * part, since + (i + 1) * part) for i in range(PARTS)]
    return run.speed(since, since + WINDOW_S) >= ENOUGH * before and \
        all(before / 2 <= speed <= before * 2 for speed in speeds)


def kill_and_measure(run, replicas):
    await_whole(run, replicas)
    began = time.monotonic()
    run.watch(BEFORE_S if replicas > 1 else EVERY_S - 3)
    before = run.speed(began, time.monotonic())
    status = run.until(lambda s: True, 10, "a status")
    victim = next(s for s in status["servers"]
                  if (s.get("role") == "primary" if replicas > 1 else s["id"] == "s1"))
    killed = time.monotonic()
    os.kill(victim["pid"], signal.SIGKILL)
    back = regained = None
    while back is None or regained is None:
        run.watch(0.1)
        after = [(t, n) for t, n in run.seen if t > killed]
        if not after:
            continue
        if after[-1][0] - killed > GIVE_UP_S:
            raise SystemExit(f"not as fast as before {GIVE_UP_S} s after {victim['id']} was killed")
        back = back or next((t - killed for t, _ in after if is_back(run, t, before)), None)
        # Not a value from before the kill: nothing arrived while training stood still.
        regained = regained or next((t - killed for t, n in after if t >= killed + (back or 1e9)
                                     and n >= status["samples_done"]), None)
    found = {"victim": victim["id"], "before": before, "back_s": back, "regained_s": regained}
    progress("{victim} killed at {before:,.0f} samples/s: back after {back_s:.2f} s, regained "
             "after {regained_s:.2f} s".format(**found))
    return found


def exact(done, records):
    """Whether audit and model agree that every record counted once."""
    rows = slices.read_tables(tally.newest(done.directory))["tally"].values()
    return done.exact(1, records) and len(rows) == EACH * records and all(
        values[0] == 1 for values, _ in rows)


def measure(args, place):
    result = {"sync": args.sync, "cases": [], "good": True}
    records = RECORDS_A_KILL * (args.runs + 1)
    for replicas in args.replicas:
        run = place.start(f"replicas-{replicas}", job(args.sync, replicas, records))
        try:
            run.until(lambda s: s["samples_done"] > 0, 60, "a job that trains")
            kills = [kill_and_measure(run, replicas) for _ in range(args.runs)]
            done = run.finished(300)
        finally:
            run.stop()
        found = {"replicas": replicas, "kills": kills, "exact": exact(done, records),
                 "back": spread([kill["back_s"] for kill in kills]),
                 "regained": spread([kill["regained_s"] for kill in kills])}
        found["reached"] = replicas == 1 or found["back"]["median"] <= ALLOWED_S
        result["cases"].append(found)
        result["good"] &= found["reached"] and found["exact"]
    return result


def tell(result):
    for case in result["cases"]:
        what = "with replicas" if case["replicas"] > 1 else "without replicas"
        print(f"{result['sync']} {what}, {len(case['kills'])} kills: back after "
              f"{spread_text(case['back'])} s{'' if case['reached'] else ', NOT REACHED'}, "
              f"regained after {spread_text(case['regained'])} s; "
              f"{'each record once' if case['exact'] else 'records did NOT count once'}")


def main():
    parser = options(__doc__, runs=5)
    parser.add_argument("--sync", default="ps-asp", choices=["ps-bsp", "ps-ssp", "ps-asp"])
    parser.add_argument("--replicas", type=lambda text: [int(n) for n in text.split(",")],
                        default=[2, 1], metavar="N,...")
    args = parser.parse_args()
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
