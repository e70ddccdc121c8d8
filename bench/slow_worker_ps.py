#!/usr/bin/env python3
"""The cost of one slow worker of four in a job with parameter servers.

    bench/slow_worker_ps.py [--runs 3] [--records 20000] [--bin build/bin] [--json]

Four workers and two servers train the model `tally`, which counts how often each record enters it;
a sample takes a worker 2 ms, much longer than the computation, so that the result is valid on 2
cores. Worker w3 is undisturbed, or takes three times as long all the time; its batches are not
moved. The goals are parts of the speed of the same consistency without a slow worker (for `ps-bsp`
with a backup worker, of plain `ps-bsp`):

    ps-asp              0.9 of (3 + 1/3) / 4, which is the most that the four can reach
    ps-bsp              between 0.25 and 0.45; a third is the most that it can reach
    ps-bsp, one backup  0.7

The exit code is 1 if a median misses its goal, or if a record did not enter the model exactly once,
according to the audit or to the model's counters. About five minutes; the machine should be idle.
"""
from runs import finish, in_place, options, progress, spread, spread_text

import slices  # of the end-to-end tests, as the next
import tally

WORKERS, BATCH = 4, 64
JOB = """
schema = 1
[job]
name = "slow-worker"
seed = {seed}
[roles.worker]
count = {workers}
[roles.server]
count = 2
[data]
format = "index"
records = {records}
[batch]
global = {batch}
[trainer]
model = "tally"
sync = "{sync}"
backup_workers = {backups}
[control]
solution = "none"
[checkpoint]
every = "0s"
[[inject]]
workers = ["*"]
delay_per_sample = "2ms"
"""
SLOW = """
[[inject]]
workers = ["w3"]
slowdown = 3.0
"""
# What: sync, backup workers, whether w3 is slow.
CASES = {
    "ps-asp": ("ps-asp", 0, False),
    "ps-asp slow": ("ps-asp", 0, True),
    "ps-bsp": ("ps-bsp", 0, False),
    "ps-bsp slow": ("ps-bsp", 0, True),
    "ps-bsp backup slow": ("ps-bsp", 1, True),
}
# What: beside what, and how much of it is asked for, at least and at most.
ASKED = {
    "ps-asp slow": ("ps-asp", 0.9 * (3 + 1 / 3) / 4, None),
    "ps-bsp slow": ("ps-bsp", 0.25, 0.45),
    "ps-bsp backup slow": ("ps-bsp", 0.7, None),
}


def counted_once(run, records):
    """Whether the model has each record once; each record has a row that counts it."""
    rows = slices.read_tables(tally.newest(run.directory))["tally"]
    return len(rows) == records and all(values[0] == 1 for values, _ in rows.values())


def train(args, place, what, number):
    sync, backups, slow = CASES[what]
    run = place.run(f"{what.replace(' ', '-')}-{number}",
                    JOB.format(workers=WORKERS, batch=BATCH, records=args.records, sync=sync,
                               backups=backups, seed=number + 1) + SLOW * slow)
    found = {"speed": run.speed, "late": run.summary["pushes"]["late"],
             "exact": run.exact(1, args.records) and counted_once(run, args.records)}
    progress(f"{what}: {found['speed']:,.0f} samples/s{'' if found['exact'] else '; NOT EXACT'}")
    return found


def measure(args, place):
    runs = {what: [] for what in CASES}
    for number in range(args.runs):
        for what in CASES:
            runs[what].append(train(args, place, what, number))
    result = {"runs": runs, "shares": {}, "good": True}
    for what, (beside, least, most) in ASKED.items():
        share = spread([slow["speed"] / calm["speed"]
                        for slow, calm in zip(runs[what], runs[beside])])
        reached = share["median"] >= least and (most is None or share["median"] <= most)
        result["shares"][what] = {**share, "beside": beside, "at_least": least, "at_most": most,
                                  "reached": reached}
        result["good"] &= reached
    result["exact"] = all(run["exact"] for found in runs.values() for run in found)
    result["good"] &= result["exact"]
    return result


def tell(result):
    for what, runs in result["runs"].items():
        print(f"{what:20}", spread_text(spread([run["speed"] for run in runs]), "{:,.0f}"),
              "samples/s")
    for what, share in result["shares"].items():
        asked = f"at least {share['at_least']:.2f}"
        if share["at_most"] is not None:
            asked += f", at most {share['at_most']:.2f}"
        print(f"{what} over {share['beside']}: {spread_text(share)}; asked for: {asked}"
              f"{'' if share['reached'] else ', NOT REACHED'}")
    print("each record once in each model" if result["exact"] else "records did NOT count once")


def main():
    parser = options(__doc__, runs=3)
    parser.add_argument("--records", type=int, default=20000, help="of an epoch (20,000)")
    args = parser.parse_args()
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
