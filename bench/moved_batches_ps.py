#!/usr/bin/env python3
"""Whether AntDT-ND should move batches if no step waits for all workers.

    bench/moved_batches_ps.py --data DIR [--syncs ps-asp,ps-ssp] [--runs 5] [--bin build/bin] [--json]

With parameter servers and no barrier, sharding alone balances the work: a faster worker fetches
more records. This program compares `nd`, whose batches follow speed, with `none` in that case. Four
workers and two servers train DeepFM on the clicks of bench/quality.py, two epochs, parts of 32
samples, 4 ms a sample; worker w3 takes three times as long all the time. For each sync and
solution, the program prints the median of the runs and their spread: samples a second, the final
AUC, how many updates came between a pull and its use (staleness) in the mean and at most, and the
number of pushes. The runs of a pair have the same seed.

It fails only if a record did not count exactly once in each epoch. People judge what the result
means for `nd` (docs/solutions.md). Six minutes for each sync; the machine should be idle.
"""
import pathlib
import statistics

from quality import EPOCHS, JOB, TRAIN, WORKERS, write_clicks
from runs import finish, in_place, options, progress, spread, spread_text

SLOW = """
[[inject]]
workers = ["*"]
delay_per_sample = "4ms"
[[inject]]
workers = ["w3"]
slowdown = 3.0
"""
SOLUTIONS = ("none", "nd")
TOLD = {"speed": "{:,.0f}", "auc": "{:.4f}", "stale_mean": "{:.1f}", "stale_max": "{:.0f}",
        "pushes": "{:,.0f}", "moves": "{:.0f}"}


def train(args, place, sync, solution, seed):
    text = JOB.format(epochs=EPOCHS, seed=seed, workers=WORKERS, batch=128, lr=1e-3,
                      directory=place.directory, model="deepfm", sync=sync, adjust="size",
                      solution=solution, rules=SLOW, servers="[roles.server]\ncount = 2",
                      trainer="staleness = 2" if sync == "ps-ssp" else "")
    run = place.run(f"{sync}-{solution}-{seed}", text)
    summary = run.summary
    found = {"speed": run.speed, "auc": summary["epochs"][-1]["eval"]["auc"],
             "stale_mean": summary["staleness"]["mean"], "stale_max": summary["staleness"]["max"],
             "pushes": summary["pushes"]["applied"],
             "moves": sum(a["kind"] == "adjust-batch" and a["outcome"] == "applied"
                          for a in summary["actions"]),
             "exact": run.exact(EPOCHS, TRAIN)}
    run.forget()
    progress(f"{sync} {solution} seed {seed}: " + ", ".join(
        f"{key} {form.format(found[key])}" for key, form in TOLD.items()))
    return found


def measure(args, place):
    write_clicks(args.data, place.directory)
    result = {"syncs": {}, "good": True}
    for sync in args.syncs:
        runs = {solution: [] for solution in SOLUTIONS}
        for seed in range(1, args.runs + 1):
            for solution in SOLUTIONS:
                runs[solution].append(train(args, place, sync, solution, seed))
        pairs = list(zip(runs["nd"], runs["none"]))
        result["syncs"][sync] = {
            "runs": runs,
            "speed_over_none": spread([nd["speed"] / none["speed"] for nd, none in pairs]),
            "auc_less_none": spread([nd["auc"] - none["auc"] for nd, none in pairs])}
        result["good"] &= all(run["exact"] for found in runs.values() for run in found)
    return result


def tell(result):
    for sync, found in result["syncs"].items():
        for solution, runs in found["runs"].items():
            for key, form in TOLD.items():
                print(f"{sync} {solution:5} {key:10}",
                      spread_text(spread([run[key] for run in runs]), form))
        print(f"{sync} nd over none: speed {spread_text(found['speed_over_none'], '{:.3f}')}, AUC "
              f"{spread_text(found['auc_less_none'], '{:+.4f}')}, mean AUC "
              f"{statistics.mean(found['auc_less_none']['values']):+.4f}")
    print("each record once an epoch" if result["good"] else "records did NOT count once an epoch")


def main():
    parser = options(__doc__, runs=5)
    parser.add_argument("--data", type=pathlib.Path, required=True,
                        help="where criteo_kaggle_10k.tar.xz is")
    parser.add_argument("--syncs", type=lambda text: text.split(","), default=["ps-asp", "ps-ssp"])
    args = parser.parse_args()
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
