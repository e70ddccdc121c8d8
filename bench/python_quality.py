#!/usr/bin/env python3
"""Whether PyTorch models are as good when AntDT-ND moves their batches about.

    bench/python_quality.py --data DIR [--python /usr/bin/python3] [--runs 3] [--only resnet,transformer]

DIR holds mnist.tar.xz and tinyshakespeare.tar.xz. A small ResNet with BatchNorm classifies MNIST,
and a transformer predicts the next character (bench/peers/quality_models.py). Each is trained with
several seeds by one process (a job of one worker, so that the records come in the same kind of
order), which shows how much the evaluation's loss varies by chance; then by four workers of which
w1 has a third of its speed, solution = "nd". The loss is within noise if it is within the 95 %
interval that Student's t gives for the mean of as many more runs of one process. Batches must have
been moved. For the ResNet the program also prints the accuracy.
"""
import argparse
import json
import math
import pathlib
import statistics

import runs
from quiet import t_quantile

PROGRAM = runs.ROOT / "bench" / "peers" / "quality_models.py"
MODELS = {"resnet": (8000, 2000, 2), "transformer": (8000, 1000, 2)}  # records, evaluated, epochs
BATCH = 64
JOB = """
schema = 1
[job]
name = "{model}"
epochs = {epochs}
seed = {seed}
[roles.worker]
count = {workers}
command = {command}
env = {{ PYTHONPATH = "{package}", OMP_NUM_THREADS = "1" }}
[data]
format = "index"
records = {records}
eval_records = {evaluated}
[batch]
global = {batch}
[trainer]
sync = "allreduce"
[control]
solution = "nd"
transient_window = "1s"
persistent_window = "5s"
[checkpoint]
every = "0s"
{slow}
"""
SLOW = """
# Long beside what is computed, so that 2 cores tell the truth.
[[inject]]
workers = ["*"]
delay_per_sample = "6ms"
[[inject]]
workers = ["w1"]
slowdown = 3.0
"""


def words(args, model, seed):
    return [str(PROGRAM), model, "--data", str(args.data.resolve()), "--seed", str(seed)]


def train(args, place, model, seed, workers):
    """Runs a whole job; returns its last evaluation as the program received it."""
    library = args.bin.resolve().parent / "lib" / "libantdt.so.1"
    records, evaluated, epochs = MODELS[model]
    command = ["/usr/bin/env", f"ANTDT_LIBRARY={library}", args.python, *words(args, model, seed)]
    done = place.run(f"{model}-{workers}-{seed}", JOB.format(
        model=model, epochs=epochs, seed=seed, command=json.dumps(command), batch=BATCH,
        package=runs.ROOT / "python", records=records, evaluated=evaluated, workers=workers,
        slow=SLOW if workers > 1 else ""))
    found = json.loads((done.directory / "logs" / "w0.1.out").read_text().splitlines()[-1])
    found["exact"] = done.exact(epochs, records)
    if workers > 1:
        found["samples"] = {w["id"]: w["samples"] for w in done.summary["workers"]}
        found["moved"] = found["samples"]["w1"] < 0.7 * statistics.mean(found["samples"].values())
    return found


def measure(args, place):
    result = {"models": {}}
    for model in args.only:
        both = {1: [], 4: []}
        for workers, seeds in ((1, args.seeds), (4, args.runs)):
            for seed in range(1, seeds + 1):
                both[workers].append(train(args, place, model, seed, workers))
                runs.progress(f"{model}, {workers} workers: {both[workers][-1]}")
        calm, uneven = both[1], both[4]
        losses = [found["loss"] for found in calm]
        mean = statistics.mean(found["loss"] for found in uneven)
        n = len(calm)
        allowed = (t_quantile(0.975, n - 1) * statistics.stdev(losses) *
                   math.sqrt(1 / n + 1 / len(uneven)))
        result["models"][model] = {
            "alone": calm, "uneven": uneven, "mean_alone": statistics.mean(losses),
            "mean_uneven": mean, "allowed": allowed,
            "within_noise": abs(mean - statistics.mean(losses)) <= allowed}
    result["good"] = all(m["within_noise"] and all(u["exact"] and u["moved"] for u in m["uneven"])
                         for m in result["models"].values())
    return result


def tell(result):
    for model, found in result["models"].items():
        print(f"{model}: loss {found['mean_alone']:.4f} by one process, {found['mean_uneven']:.4f} by "
              f"four workers with a slow one; noise allows {found['allowed']:.4f}: "
              f"{'within noise' if found['within_noise'] else 'NOT within noise'}; accuracy "
              f"{statistics.mean(a['accuracy'] for a in found['alone']):.4f} and "
              f"{statistics.mean(a['accuracy'] for a in found['uneven']):.4f}")


def model_list(text):
    names = text.split(",")
    for name in names:
        if name not in MODELS:
            raise argparse.ArgumentTypeError(f"'{name}' is none of {', '.join(MODELS)}")
    return names


def main():
    parser = runs.options(__doc__, 3)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="where the archives are")
    parser.add_argument("--python", default="/usr/bin/python3", help="with PyTorch")
    parser.add_argument("--seeds", type=int, default=5, help="runs of one process")
    parser.add_argument("--only", type=model_list, default=list(MODELS), metavar="MODEL,...")
    args = parser.parse_args()
    runs.finish(args, runs.in_place(args, measure), tell)


if __name__ == "__main__":
    main()
