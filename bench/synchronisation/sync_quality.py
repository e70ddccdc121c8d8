#!/usr/bin/env python3
"""Whether models that are trained without a sum over all workers are as good as by all-reduce.

    bench/synchronisation/sync_quality.py --data DIR [--bin build/bin] [--only mlp,deepfm,resnet] [--runs 3] [--json]

DIR holds mnist.tar.xz and criteo_kaggle_10k.tar.xz. Real jobs, of 16, 8 and 4 workers, once for each
seed with trainer.sync = "allreduce" and "ds-sync":

    mlp     60,000 digits, one epoch of steps of 512, SGD: the loss of the epoch, and of 10,000 others
    deepfm  8,000 clicks, two epochs of steps of 128, Adam; 2,000 others are evaluated
    resnet  6,000 digits, one epoch of steps of 64, Adam; 2,000 others are evaluated

The goal: the loss of mlp within 2 % of all-reduce's for the same seed, on average; the others' mean
AUC or accuracy within twice the standard error of the difference. The exit code is 1 if one is
missed, or if a record did not count exactly once in each epoch.
"""
import gzip
import pathlib
import statistics
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from quality import write_clicks  # noqa: E402
from runs import finish, in_place, options, progress  # noqa: E402

SYNCS = ("allreduce", "ds-sync")
JOB = """
schema = 1
[job]
name = "quality"
epochs = {epochs}
seed = {seed}
[roles.worker]
count = {workers}
[data]
{data}
[batch]
global = {batch}
[trainer]
model = "{model}"
sync = "{sync}"
optimizer = "{optimizer}"
lr = {lr}
threads = 1
{trainer}
[control]
solution = "none"
"""


def idx(path, records=None):
    """The first records of an IDX file, as such a file."""
    content = gzip.open(path).read()
    if records is None:
        return content
    header = 4 + 4 * content[3]
    size = (len(content) - header) // int.from_bytes(content[4:8], "big")
    return content[:4] + records.to_bytes(4, "big") + content[8:header + records * size]


def write_digits(archives, directory, train=None, evaluated=None):
    """Writes digits of MNIST as they lie in the archive; returns [data]."""
    with tarfile.open(archives / "mnist.tar.xz") as tar:
        tar.extractall(directory)
    files = {}
    for key, name, count in (("paths", "train-images-idx3-ubyte", train),
                             ("labels", "train-labels-idx1-ubyte", train),
                             ("eval_paths", "t10k-images-idx3-ubyte", evaluated),
                             ("eval_labels", "t10k-labels-idx1-ubyte", evaluated)):
        found, = (directory / "mnist").glob(name + "*.gz")
        files[key] = directory / f"{name}-{count or 'all'}"
        files[key].write_bytes(idx(found, count))
    return 'format = "idx"\n' + "".join(f'{k} = ["{v}"]\n' for k, v in files.items())


def tasks_of(args, place):
    """What is trained, and what is compared."""
    directory, tasks = place.directory, {}
    if "mlp" in args.only:
        tasks["mlp"] = {"epochs": 1, "workers": 16, "batch": 512, "model": "mlp", "records": 60000,
                        "optimizer": "sgd", "lr": 0.1, "trainer": "hidden = [128]",
                        "data": write_digits(args.data, directory), "metric": "log_loss"}
    if "deepfm" in args.only:
        write_clicks(args.data, directory)
        clicks = (f'format = "criteo"\npaths = ["{directory}/train.tsv"]\n'
                  f'eval_paths = ["{directory}/eval.tsv"]\nhash_buckets = 16384\n')
        tasks["deepfm"] = {"epochs": 2, "workers": 8, "batch": 128, "model": "deepfm",
                           "records": 8000, "optimizer": "adam", "lr": 1e-3, "trainer": "",
                           "data": clicks, "metric": "auc"}
    if "resnet" in args.only:
        tasks["resnet"] = {"epochs": 1, "workers": 4, "batch": 64, "model": "resnet",
                           "records": 6000, "optimizer": "adam", "lr": 1e-3, "trainer": "",
                           "data": write_digits(args.data, directory, 6000, 2000),
                           "metric": "accuracy"}
    return tasks


def train(place, name, task, sync, seed):
    run = place.run(f"{name}-{sync}-{seed}", JOB.format(sync=sync, seed=seed, **task))
    last = run.summary["epochs"][-1]
    found = {"loss": last["train_loss"], "eval": last["eval"],
             "metric": last["eval"][task["metric"]], "speed": run.speed,
             "exact": run.exact(task["epochs"], task["records"])}
    run.forget()
    progress(f"{name} {sync} seed {seed}: loss {found['loss']:.4f}, {task['metric']} "
             f"{found['metric']:.4f}, {found['speed']:,.0f} samples/s")
    return found


def compared(name, task, runs):
    pairs = list(zip(runs["allreduce"], runs["ds-sync"], strict=True))
    row = {"task": name, "measured": task["metric"], "runs": runs,
           "exact": all(run["exact"] for pair in pairs for run in pair)}
    for key in ("loss", "metric"):
        row[key] = {s: [run[key] for run in runs[s]] for s in SYNCS}
        off = [ds[key] - all_[key] for all_, ds in pairs]
        row[key]["off"] = statistics.mean(off)
        row[key]["relative"] = [ds[key] / all_[key] - 1 for all_, ds in pairs]
    error = (sum(statistics.variance(row["metric"][s]) for s in SYNCS) / len(pairs)) ** 0.5
    row["error"] = error
    row["reached"] = abs(statistics.mean(row["metric"]["relative"])) < 0.02 if name == "mlp" \
        else abs(row["metric"]["off"]) <= 2 * error
    return row


def measure(args, place):
    rows = []
    for name, task in tasks_of(args, place).items():
        runs = {sync: [] for sync in SYNCS}
        for seed in range(1, args.runs + 1):
            for sync in SYNCS:
                runs[sync].append(train(place, name, task, sync, seed))
        rows.append(compared(name, task, runs))
    return {"rows": rows, "good": all(row["reached"] and row["exact"] for row in rows)}


def tell(result):
    def of(values):
        return f"{statistics.mean(values):.4f} ({min(values):.4f} to {max(values):.4f})"
    for row in result["rows"]:
        for key, what in (("loss", "training loss"), ("metric", row["measured"])):
            print(f"{row['task']:7} {what:13} all-reduce {of(row[key]['allreduce'])}, ds-sync "
                  f"{of(row[key]['ds-sync'])}, {row[key]['off']:+.4f} "
                  f"({100 * statistics.mean(row[key]['relative']):+.2f} %)")
        print(f"{row['task']:7} standard error of the difference {row['error']:.4f}"
              f"{'' if row['reached'] else ', NOT REACHED'}"
              f"{'' if row['exact'] else '; records did NOT count once each'}")


def main():
    parser = options(__doc__, runs=3)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="where the archives are")
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="TASK,...",
                        default=["mlp", "deepfm", "resnet"])
    args = parser.parse_args()
    if args.runs < 2:
        parser.error("needs two runs")
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
