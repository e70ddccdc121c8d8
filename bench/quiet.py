#!/usr/bin/env python3
"""Checks that AntDT-ND does nothing if there is no straggler, and measures its cost.

    bench/quiet.py [--bin build/bin] [--steps 10000] [--pairs 10] [--only long|pairs]
                   [--quick] [--json] [--out DIR]

Eight equal emulated workers, 10 % noise, a step of some 26 ms (the slowest of eight). First one
long job with AntDT-ND, in which any action is an error, even one that was only advised. Then pairs
of short jobs with `nd` and `none`, in alternating order, so that a machine that becomes slower or
faster favours neither. The ratio of a pair is the speed of `nd` over that of `none`, in samples for
a second of training (the start of the processes does not count). The program prints the median of
the ratios, and their mean with its 95 % interval by Student's t.

The windows are 1 s and 5 s, as in `antdt bench stragglers --quick`: a window has some 40 steps, and
a shorter window contains more noise. Everything takes about a quarter of an hour on an idle
machine; with --quick a minute. The exit code is 1 if there was an action, or if the mean is below
0.99.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin"))
WORKERS = 8
BATCH = 16 * WORKERS
PAIR_STEPS = 900
LEAST_RATIO = 0.99
JOB = """
schema = 1
[job]
name = "quiet-{solution}"
seed = {seed}
[roles.worker]
count = {workers}
[data]
format = "index"
records = {records}
[batch]
global = {batch}
[control]
solution = "{solution}"
transient_window = "1s"
persistent_window = "5s"
allow = ["kill-restart"]
[checkpoint]
every = "0s"
[trainer]
model = "emulated"
[emulated]
noise = 0.10
parameters = 64
[[emulated.device]]
class = "any"
flat = "2500us"
flat_until = 2
per_sample = "1250us"
"""


class Jobs:
    """Runs jobs one after another in a directory."""

    def __init__(self, antdt, directory):
        self.antdt, self.directory, self.count = antdt, directory, 0

    def run(self, solution, steps, seed):
        """The figures of the run's summary."""
        self.count += 1
        name = f"{self.count:03}-{solution}"
        job = self.directory / f"{name}.toml"
        job.write_text(JOB.format(solution=solution, seed=seed, workers=WORKERS, batch=BATCH,
                                  records=steps * BATCH), encoding="utf-8")
        run = self.directory / name
        done = subprocess.run([self.antdt, "run", str(job), "--run-dir", str(run)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{job} ended with {done.returncode}: {done.stderr.strip()}")
        return json.loads((run / "summary.json").read_text(encoding="utf-8"))


def t_quantile(probability, freedom):
    """The quantile of Student's t distribution, for probabilities above 0.5."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    scale /= math.sqrt(freedom * math.pi)

    def density(x):
        return scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2)

    def below(x, parts=2000):  # Simpson's rule from 0
        h = x / parts
        inner = sum((4 if i % 2 else 2) * density(i * h) for i in range(1, parts))
        return 0.5 + h / 3 * (density(0) + inner + density(x))
    low, high = 0.0, 1000.0
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < probability else (low, middle)
    return high


def interval(values):
    """The mean and half of its 95 % interval, which is unknown for a single value."""
    mean = statistics.mean(values)
    if len(values) < 2:
        return mean, None
    error = statistics.stdev(values) / math.sqrt(len(values))
    return mean, t_quantile(0.975, len(values) - 1) * error


def long_job(jobs, steps):
    summary = jobs.run("nd", steps, seed=1)
    return {"steps": steps, "seconds": summary["training_seconds"],
            "step_ms": 1e3 * summary["training_seconds"] / steps,
            "actions": [{k: a.get(k) for k in ("kind", "target", "outcome", "reason")}
                        for a in summary["actions"]]}


def pairs_of_jobs(jobs, pairs, steps):
    ratios, actions = [], 0
    for n in range(pairs):
        speed = {}
        for solution in ("nd", "none") if n % 2 == 0 else ("none", "nd"):
            summary = jobs.run(solution, steps, seed=2 + n)
            speed[solution] = summary["samples_trained"] / summary["training_seconds"]
            actions += len(summary["actions"])
        ratios.append(speed["nd"] / speed["none"])
        print(f"pair {n + 1}: nd {speed['nd']:,.0f} none {speed['none']:,.0f} samples/s, ratio "
              f"{ratios[-1]:.4f}", file=sys.stderr, flush=True)
    mean, half = interval(ratios)
    return {"steps": steps, "ratios": ratios, "median": statistics.median(ratios), "mean": mean,
            "interval": None if half is None else [mean - half, mean + half], "actions": actions}


def measure(args, directory):
    jobs = Jobs(str(args.bin.resolve() / "antdt"), directory)
    result = {}
    if args.only != "pairs":
        result["long"] = long_job(jobs, args.steps)
    if args.only != "long":
        result["pairs"] = pairs_of_jobs(jobs, args.pairs, args.pair_steps)
    return result


def tell(result):
    if "long" in result:
        long = result["long"]
        print("{steps:,} steps in {seconds:.0f} s ({step_ms:.1f} ms each), ".format(**long) +
              f"{len(long['actions'])} actions")
        for action in long["actions"]:
            print("  {kind} {target} ({outcome}): {reason}".format(**action))
    if "pairs" in result:
        pairs = result["pairs"]
        spread = "" if pairs["interval"] is None else \
            " (95 %: {:.4f} to {:.4f})".format(*pairs["interval"])
        print(f"nd over none, {len(pairs['ratios'])} pairs of {pairs['steps']:,} steps: median "
              f"{pairs['median']:.4f}, mean {pairs['mean']:.4f}{spread}, least "
              f"{min(pairs['ratios']):.4f}, most {max(pairs['ratios']):.4f}; "
              f"{pairs['actions']} actions")


def is_quiet(result):
    quiet = not result.get("long", {}).get("actions")
    if "pairs" in result:
        quiet = quiet and result["pairs"]["actions"] == 0
        quiet = quiet and result["pairs"]["mean"] >= LEAST_RATIO
    return quiet


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=BIN, help="where antdt is")
    parser.add_argument("--steps", type=int, help="of the long job (10,000; --quick: 500)")
    parser.add_argument("--pairs", type=int, help="of jobs (10; --quick: 2)")
    parser.add_argument("--pair-steps", type=int, help="of each of their jobs (900; --quick: 200)")
    parser.add_argument("--only", choices=["long", "pairs"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=pathlib.Path,
                        help="keeps job files, runs and result.json in this new directory")
    args = parser.parse_args()
    args.steps = args.steps or (500 if args.quick else 10000)
    args.pairs = args.pairs or (2 if args.quick else 10)
    args.pair_steps = args.pair_steps or (200 if args.quick else PAIR_STEPS)
    if args.out:
        args.out.mkdir(parents=True)
        result = measure(args, args.out)
        (args.out / "result.json").write_text(json.dumps(result, indent=2) + "\n",
                                              encoding="utf-8")
    else:
        with tempfile.TemporaryDirectory(prefix="antdt-quiet-") as directory:
            result = measure(args, pathlib.Path(directory))
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        tell(result)
    sys.exit(not is_quiet(result))


if __name__ == "__main__":
    main()
