#!/usr/bin/env python3
"""Runs emulated jobs both as real jobs and in the simulation, and compares how long training took.

    ANTDT_BIN=build/bin bench/predictions/simulate_vs_real.py JOB... [--solution nd]... [--set K=V]...
                                                  [--within 0.10] [--json]
    ANTDT_BIN=build/bin bench/predictions/simulate_vs_real.py --done stragglers/*.toml

A JOB is a job.toml whose model is "emulated". The real run needs an idle machine: its workers
sleep, but there are many. With --done the real run exists already, in the directory JOB beside
JOB.toml, where `antdt bench stragglers` leaves it. The exit code is 1 if a time differs by more
than --within.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ANTDT = pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin")) / "antdt"


def overrides(args, solution):
    settings = [*args.set, f"control.solution={solution}"]
    return [word for setting in settings for word in ("--set", setting)]


def real(job, args, solution):
    """Seconds in training phases, by the run's summary."""
    with tempfile.TemporaryDirectory(prefix="antdt-simulate-") as directory:
        run = pathlib.Path(directory) / "run"
        subprocess.run([ANTDT, "run", job, "--run-dir", run, "--json", *overrides(args, solution)],
                       check=True, stdout=subprocess.DEVNULL)
        return json.loads((run / "summary.json").read_text(encoding="utf-8"))["training_seconds"]


def simulated(job, args, solution):
    chosen = [] if solution is None else ["--solution", solution, *overrides(args, solution)]
    out = subprocess.run([ANTDT, "simulate", job, "--json", *chosen], check=False,
                         capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(f"{job}: {out.stderr.strip()}")
    return json.loads(out.stdout)[0]["job_seconds"]


def done(job):
    summary = pathlib.Path(job).with_suffix("") / "summary.json"
    return json.loads(summary.read_text(encoding="utf-8"))["training_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="+", metavar="JOB")
    parser.add_argument("--solution", action="append")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--done", action="store_true", help="the real runs are there")
    parser.add_argument("--within", type=float, default=0.10)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    cells = []
    for job in args.jobs:
        for solution in [None] if args.done else args.solution or ["none", "nd"]:
            cell = {"situation": pathlib.Path(job).stem, "solution": solution or "",
                    "real_seconds": done(job) if args.done else real(job, args, solution),
                    "simulated_seconds": simulated(job, args, solution)}
            cell["off"] = cell["simulated_seconds"] / cell["real_seconds"] - 1
            cells.append(cell)
            if not args.json:
                print("{situation:24} {solution:16} real {real_seconds:8.2f} s  simulated "
                      "{simulated_seconds:8.2f} s  {off:+.1%}".format(**cell), flush=True)
    if args.json:
        print(json.dumps(cells, indent=2))
    sys.exit(any(abs(cell["off"]) > args.within for cell in cells))


if __name__ == "__main__":
    main()
