#!/usr/bin/env python3
"""Whether a model is as good if solutions move its batches.

    bench/quality.py --data DIR [--bin build/bin] [--only mix,mix-ps,three-classes,pai-4]
                     [--seeds 10] [--runs 3] [--model deepfm] [--json] [--out DIR]

DIR holds criteo_kaggle_10k.tar.xz (clicks: the first 8,000 rows are trained, the last 2,000
evaluated) and pai_minibatch.tar.xz (batch times of real jobs, for pai-4). Four workers train two
epochs in steps of 128 samples. Undisturbed jobs with several seeds, equal parts and no delays show
how much the AUC varies by chance, for each sync. Then come the situations of `antdt bench
stragglers`, with the first of these seeds and a delay for each sample. The delay is much longer
than the computation, so that the result is valid on 2 cores:

    mix            nd: w0 at 1/8 all along, w1 and w2 at 1/3 for 3 s of each 12, at random
    mix-ps         the same around a parameter server, sync = "ps-bsp"
    three-classes  dd: speeds 1 : 1 : 2.5 : 4, memory for 64, 64, 48 and 32 samples
    pai-4          nd: PAI's job 4 replayed step by step

A situation is within noise when the mean AUC of its runs is within the 95 % interval that Student's
t gives for the mean of as many more undisturbed runs. Batches must have been moved, too. The exit
code is 1 if one of these fails, or if a record did not count exactly once in each epoch. Everything
takes ten minutes on an idle machine.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile

from quiet import t_quantile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin"))
WORKERS = 4
EPOCHS = 2
TRAIN, EVAL = 8000, 2000
JOB = """
schema = 1
[job]
name = "quality"
epochs = {epochs}
seed = {seed}
[roles.worker]
count = {workers}
{servers}
[data]
format = "criteo"
paths = ["{directory}/train.tsv"]
eval_paths = ["{directory}/eval.tsv"]
hash_buckets = 16384
[batch]
global = {batch}
adjust = "{adjust}"
[trainer]
model = "{model}"
sync = "{sync}"
optimizer = "adam"
lr = {lr}
{trainer}
[control]
solution = "{solution}"
transient_window = "1s"
persistent_window = "5s"
[checkpoint]
every = "0s"
{rules}
"""
MIX = """
[[inject]]
workers = ["*"]
delay_per_sample = "4ms"
[[inject]]
workers = ["w0"]
slowdown = 8.0
[[inject]]
workers = ["w1", "w2"]
slowdown = 3.0
every = "12s"
for = "3s"
"""
DEVICE = """
[[device]]
class = "{name}"
workers = [{workers}]
max_micro_batch = {memory}
[[inject]]
workers = [{workers}]
delay = "4ms"
delay_per_sample = "{delay}"
"""
THREE_CLASSES = "".join(
    DEVICE.format(name=name, workers=workers, memory=memory, delay=delay)
    for name, workers, memory, delay in (("slow", '"w0", "w1"', 64, "8ms"),
                                         ("middle", '"w2"', 48, "3200us"),
                                         ("fast", '"w3"', 32, "2ms")))
REPLAY = """
[[inject]]
workers = ["*"]
delay_per_sample = "5ms"
[[inject]]
workers = ["*"]
trace = "{directory}/pai_minibatch/job_4_norm.csv"
"""
# Situation: sync, solution, what is injected.
CASES = {
    "mix": ("allreduce", "nd", MIX),
    "mix-ps": ("ps-bsp", "nd", MIX),
    "three-classes": ("allreduce", "dd", THREE_CLASSES),
    "pai-4": ("allreduce", "nd", REPLAY),
}


def unpack(data, archive, directory):
    path = data / f"{archive}.tar.xz"
    if not path.exists():
        raise SystemExit(f"{path} is not there: say with --data where it is")
    with tarfile.open(path) as tar:
        tar.extractall(directory)


def run_job(args, directory, name, **keys):
    """Runs a whole job; returns its final AUC, the actions, and how many samples each worker
    trained."""
    servers = keys["sync"] != "allreduce"
    job = directory / f"{name}.toml"
    job.write_text(JOB.format(epochs=EPOCHS, workers=WORKERS, batch=128, lr=1e-3,
                              directory=directory,
                              model=args.model, adjust="size" if servers else "both",
                              servers="[roles.server]\ncount = 1" if servers else "", trainer="",
                              **keys),
                   encoding="utf-8")
    run = directory / name
    antdt = str(args.bin.resolve() / "antdt")
    done = subprocess.run([antdt, "run", str(job), "--run-dir", str(run)], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{job} ended with {done.returncode}: {done.stderr.strip()}")
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    audit = subprocess.run([antdt, "data", "audit", str(run), "--json"], capture_output=True,
                           text=True, check=True)
    epochs = json.loads(audit.stdout)["epochs"]
    moved = [a for a in summary["actions"]
             if a["kind"] == "adjust-batch" and a["outcome"] == "applied"]
    samples = {w["id"]: w["samples"] for w in summary["workers"]}
    equal = sum(samples.values()) / WORKERS
    result = {"auc": summary["epochs"][-1]["eval"]["auc"], "seed": keys["seed"],
              "seconds": summary["training_seconds"], "moves": len(moved),
              "samples": samples,
              # The share of samples that moved to another worker, compared with equal parts.
              "moved": sum(abs(n - equal) for n in samples.values()) / 2 / (WORKERS * equal),
              "last": moved[-1]["reason"] if moved else "",
              "exact": len(epochs) == EPOCHS and all(e["once"] == TRAIN and
                                                     e["repeated"] == e["lost"] == 0
                                                     for e in epochs)}
    print("{}: AUC {auc:.4f} in {seconds:.1f} s, {moves} times moved, {moved:.0%} of the samples"
          .format(name, **result), file=sys.stderr, flush=True)
    return result


def undisturbed(args, directory, sync):
    runs = [run_job(args, directory, f"undisturbed-{sync}-{seed}", sync=sync, solution="none",
                    rules="", seed=seed) for seed in range(1, args.seeds + 1)]
    aucs = [run["auc"] for run in runs]
    return {"runs": runs, "mean": statistics.mean(aucs), "deviation": statistics.stdev(aucs)}


def judge(runs, calm):
    """Compares the case with the undisturbed runs of the same sync."""
    mean = statistics.mean(run["auc"] for run in runs)
    n = len(calm["runs"])
    allowed = t_quantile(0.975, n - 1) * calm["deviation"] * math.sqrt(1 / n + 1 / len(runs))
    same_seed = {run["seed"]: run["auc"] for run in calm["runs"]}
    return {"runs": runs, "mean": mean, "difference": mean - calm["mean"], "allowed": allowed,
            "within_noise": abs(mean - calm["mean"]) <= allowed,
            "from_same_seed": [run["auc"] - same_seed[run["seed"]] for run in runs],
            "disturbed": all(run["moves"] > 0 for run in runs),
            "exact": all(run["exact"] for run in runs)}


def write_clicks(data, directory):
    unpack(data, "criteo_kaggle_10k", directory)
    rows = (directory / "criteo_kaggle_10k" / "train_10k.tsv").read_text().splitlines(True)
    (directory / "train.tsv").write_text("".join(rows[:TRAIN]))
    (directory / "eval.tsv").write_text("".join(rows[TRAIN:TRAIN + EVAL]))


def measure(args, directory):
    write_clicks(args.data, directory)
    if "pai-4" in args.only:
        unpack(args.data, "pai_minibatch", directory)
    result = {"undisturbed": {}, "cases": {}}
    for name in args.only:
        sync, solution, rules = CASES[name]
        if sync not in result["undisturbed"]:
            result["undisturbed"][sync] = undisturbed(args, directory, sync)
        runs = [run_job(args, directory, f"{name}-{seed}", sync=sync, solution=solution,
                        rules=rules.format(directory=directory), seed=seed)
                for seed in range(1, args.runs + 1)]
        result["cases"][name] = {"sync": sync, "solution": solution,
                                 **judge(runs, result["undisturbed"][sync])}
    return result


def tell(result):
    for sync, calm in result["undisturbed"].items():
        print(f"undisturbed, {sync}: AUC {calm['mean']:.4f}, standard deviation "
              f"{calm['deviation']:.4f} over {len(calm['runs'])} seeds")
    for name, case in result["cases"].items():
        moves = sum(run["moves"] for run in case["runs"]) / len(case["runs"])
        moved = statistics.mean(run["moved"] for run in case["runs"])
        print(f"{name} with {case['solution']}: AUC {case['mean']:.4f}, off by "
              f"{case['difference']:+.4f} (from the same seeds "
              f"{statistics.mean(case['from_same_seed']):+.4f}), noise allows "
              f"{case['allowed']:.4f}: "
              f"{'within noise' if case['within_noise'] else 'NOT within noise'}; "
              f"{moves:.0f} times moved, {moved:.0%} of the samples"
              f"{'' if case['exact'] else '; records did NOT count once each'}")


def case_list(text):
    names = text.split(",")
    for name in names:
        if name not in CASES:
            raise argparse.ArgumentTypeError(f"'{name}' is none of {', '.join(CASES)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="where the archives are")
    parser.add_argument("--bin", type=pathlib.Path, default=BIN, help="where antdt is")
    parser.add_argument("--only", type=case_list, default=list(CASES), metavar="CASE,...")
    parser.add_argument("--seeds", type=int, default=10, help="undisturbed runs")
    parser.add_argument("--runs", type=int, default=3, help="of each case; at most the seeds")
    parser.add_argument("--model", default="deepfm")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=pathlib.Path,
                        help="keeps job files, runs and result.json in this new directory")
    args = parser.parse_args()
    if not 1 <= args.runs <= args.seeds or args.seeds < 2:
        parser.error("needs two seeds, and no more runs than seeds")
    if args.out:
        args.out.mkdir(parents=True)
        result = measure(args, args.out.resolve())
        (args.out / "result.json").write_text(json.dumps(result, indent=2) + "\n",
                                              encoding="utf-8")
    else:
        with tempfile.TemporaryDirectory(prefix="antdt-quality-") as directory:
            result = measure(args, pathlib.Path(directory))
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        tell(result)
    good = all(case["within_noise"] and case["disturbed"] and case["exact"]
               for case in result["cases"].values())
    sys.exit(not good)


if __name__ == "__main__":
    main()
