#!/usr/bin/env python3
"""The gain of AntDT-ND for a real model if one worker of four has a third of its speed.

    bench/slow_worker.py [--runs 3] [--rows 24000] [--json]

Trains DeepFM over all-reduce on made data with `solution = "none"` and `"nd"`, alternating `--runs`
times, and compares samples/s over the whole run. A worker's speed is set by a delay for each
sample, which is much longer than the computation, so that the result is valid on 2 cores.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ANTDT = str(pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin")) / "antdt")
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import jobs  # noqa: E402
from jobs import SLOW  # noqa: E402


def train(directory, solution, number):
    job = directory / f"{solution}.toml"
    job.write_text(jobs.ctr(directory / "data" / "train.tsv", directory / "data" / "eval.tsv",
                            workers=4, extra=SLOW.format(solution=solution)), encoding="utf-8")
    run = directory / f"{solution}-{number}"
    subprocess.run([ANTDT, "run", str(job), "--run-dir", str(run)], check=True,
                   stdout=subprocess.DEVNULL)
    return json.loads((run / "summary.json").read_text(encoding="utf-8"))["samples_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=24000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    speeds = {"none": [], "nd": []}
    with tempfile.TemporaryDirectory(prefix="antdt-slow-worker-") as name:
        directory = pathlib.Path(name)
        subprocess.run([ANTDT, "data", "synth", "criteo", "--rows", str(args.rows), "--seed", "5",
                        "--out", str(directory / "data")], check=True, stdout=subprocess.DEVNULL)
        for number in range(args.runs):
            for solution, seen in speeds.items():
                seen.append(train(directory, solution, number))
    ratios = [nd / none for none, nd in zip(speeds["none"], speeds["nd"])]
    result = {"samples_per_second": speeds, "nd_over_none": statistics.median(ratios),
              "least": min(ratios), "most": max(ratios)}
    if args.json:
        print(json.dumps(result))
        return
    for solution, seen in speeds.items():
        print(f"{solution:5} " + "  ".join(f"{s:,.0f}" for s in seen) + " samples/s")
    print(f"nd over none: {result['nd_over_none']:.2f} "
          f"({result['least']:.2f} to {result['most']:.2f})")


if __name__ == "__main__":
    main()
