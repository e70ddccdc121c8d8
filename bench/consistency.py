#!/usr/bin/env python3
"""Whether a model of parameter servers is as good as one of all-reduce.

    bench/consistency.py --data DIR [--bin build/bin] [--models deepfm,xdeepfm] [--seeds 5]
                         [--json]

DIR holds criteo_kaggle_10k.tar.xz. Four workers train it as bench/quality.py does, for each
model under all-reduce and around two servers with each consistency (ps-ssp with staleness 2),
for some seeds. Told are the mean AUC and what it is off from that of all-reduce. The exit code
is 1 when servers are worse by more than 0.01, or a record did not count exactly once an epoch.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from quality import BIN, run_job, write_clicks

SYNCS = ("allreduce", "ps-bsp", "ps-ssp", "ps-asp")
ALLOWED = 0.01


def measure(args, directory):
    write_clicks(args.data, directory)
    rows = []
    for model in args.models:
        args.model = model
        for sync in SYNCS:
            runs = [run_job(args, directory, f"{model}-{sync}-{seed}", sync=sync, solution="none",
                            rules="", seed=seed, server_count=2,
                            trainer="staleness = 2" if sync == "ps-ssp" else "")
                    for seed in range(1, args.seeds + 1)]
            aucs = [run["auc"] for run in runs]
            rows.append({"model": model, "sync": sync, "auc": statistics.mean(aucs),
                         "deviation": statistics.stdev(aucs),
                         "exact": all(run["exact"] for run in runs)})
            rows[-1]["off"] = rows[-1]["auc"] - next(
                row["auc"] for row in rows if (row["model"], row["sync"]) == (model, "allreduce"))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="where the archive is")
    parser.add_argument("--bin", type=pathlib.Path, default=BIN, help="where antdt is")
    parser.add_argument("--models", type=lambda text: text.split(","),
                        default=["deepfm", "xdeepfm"], metavar="MODEL,...")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each, at least two")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.seeds < 2:
        parser.error("needs two seeds")
    with tempfile.TemporaryDirectory(prefix="antdt-consistency-") as directory:
        rows = measure(args, pathlib.Path(directory))
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            print("{model:8} {sync:10} AUC {auc:.4f} (deviation {deviation:.4f}), {off:+.4f} from "
                  "all-reduce{lost}".format(**row, lost="" if row["exact"] else
                                            "; records did NOT count once each"))
    sys.exit(any(row["off"] < -ALLOWED or not row["exact"] for row in rows))


if __name__ == "__main__":
    main()
