#!/usr/bin/env python3
"""Compares the quality of models trained with parameter servers, by all-reduce, and the best.

    bench/consistency.py --data DIR [--models deepfm,xdeepfm] [--runs 3] [--bin build/bin] [--json]
    bench/consistency.py --made 1000000 [--models deepfm] [--runs 3]

With --data (the directory of criteo_kaggle_10k.tar.xz), four workers train its first 8,000 rows for
two epochs as in bench/quality.py, by all-reduce and with two servers under each consistency (ps-ssp
with staleness 2), once for each seed; the last 2,000 rows are evaluated. The goal is a mean AUC at
most 0.01 below that of all-reduce. 24 jobs, five minutes.

With --made they train this number of rows from `antdt data synth`, and evaluate on a quarter as
many. The clicks were drawn with known probabilities, whose AUC is the best that a model can reach
except by chance. There are two epochs of batches of 4,096, and the learning rate is half as large:
without a barrier each part of a batch is a step of its own, and at 1e-3 a few models end 0.01 below
the others. The goal is a mean AUC within 0.02 of the best. Of 1,000,000 rows 12 jobs, six minutes.

The exit code is 1 if the goal is missed, or if a record did not count exactly once in each epoch.
"""
import pathlib
import statistics

from quality import EPOCHS, EVAL, JOB, TRAIN, write_clicks
from runs import finish, in_place, options, progress

SYNCS = ("allreduce", "ps-bsp", "ps-ssp", "ps-asp")
FROM_ALLREDUCE, FROM_BEST = 0.01, 0.02
WORKERS = 4


def job(model, sync, seed, task):
    servers = sync != "allreduce"
    return JOB.format(epochs=task["epochs"], seed=seed, workers=WORKERS, batch=task["batch"],
                      lr=task["lr"], directory=task["directory"], model=model, sync=sync,
                      adjust="size" if servers else "both", solution="none", rules="",
                      servers="[roles.server]\ncount = 2" if servers else "",
                      trainer="staleness = 2" if sync == "ps-ssp" else "")


def train(place, model, sync, seed, task):
    run = place.run(f"{model}-{sync}-{seed}", job(model, sync, seed, task))
    found = {"auc": run.summary["epochs"][-1]["eval"]["auc"], "speed": run.speed,
             "exact": run.exact(task["epochs"], task["records"])}
    run.forget()
    progress(f"{model} {sync} seed {seed}: AUC {found['auc']:.4f}, {found['speed']:,.0f} "
             "samples/s")
    return found


def task_of(args, place):
    """The training data, and the best possible AUC if it is known."""
    if args.made is None:
        write_clicks(args.data, place.directory)
        return {"directory": place.directory, "records": TRAIN, "evaluated": EVAL,
                "epochs": EPOCHS, "batch": 128, "lr": 1e-3, "best": None}
    made = place.synth(args.made, seed=5)
    return {"directory": place.directory / "data", "records": args.made,
            "evaluated": made["eval_rows"], "epochs": 2, "batch": 4096, "lr": 5e-4,
            "best": made["best_auc"]}


def measure(args, place):
    task = task_of(args, place)
    rows = []
    for model in args.models:
        for sync in SYNCS:
            runs = [train(place, model, sync, seed, task) for seed in range(1, args.runs + 1)]
            aucs = [run["auc"] for run in runs]
            rows.append({"model": model, "sync": sync, "auc": statistics.mean(aucs),
                         "deviation": statistics.stdev(aucs), "least": min(aucs),
                         "most": max(aucs), "runs": runs,
                         "exact": all(run["exact"] for run in runs)})
            allreduce = next(row for row in rows if row["model"] == model)
            rows[-1]["off"] = rows[-1]["auc"] - allreduce["auc"]
            rows[-1]["reached"] = rows[-1]["off"] >= -FROM_ALLREDUCE if task["best"] is None \
                else rows[-1]["auc"] >= task["best"] - FROM_BEST
    return {"records": task["records"], "evaluated": task["evaluated"], "best": task["best"],
            "rows": rows, "good": all(row["reached"] and row["exact"] for row in rows)}


def tell(result):
    print("{records:,} rows trained, {evaluated:,} evaluated".format(**result) +
          ("" if result["best"] is None else f"; the best AUC is {result['best']:.4f}"))
    for row in result["rows"]:
        beside = f"{row['off']:+.4f} from all-reduce"
        if result["best"] is not None:
            beside += f", {row['auc'] - result['best']:+.4f} from the best"
        print("{model:8} {sync:10} AUC {auc:.4f} (deviation {deviation:.4f}, {least:.4f} to "
              "{most:.4f}), ".format(**row) + beside + ("" if row["reached"] else ", NOT REACHED")
              + ("" if row["exact"] else "; records did NOT count once each"))


def main():
    parser = options(__doc__, runs=3)
    data = parser.add_mutually_exclusive_group(required=True)
    data.add_argument("--data", type=pathlib.Path, help="where the archive is")
    data.add_argument("--made", type=int, metavar="ROWS", help="to make, and to train")
    parser.add_argument("--models", type=lambda text: text.split(","), metavar="MODEL,...",
                        help="with --data deepfm and xdeepfm, with --made deepfm")
    args = parser.parse_args()
    args.models = args.models or (["deepfm"] if args.data is None else ["deepfm", "xdeepfm"])
    if args.runs < 2:
        parser.error("needs two runs")
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
