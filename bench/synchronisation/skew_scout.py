#!/usr/bin/env python3
"""What thresholds of updates between domains cost in bytes and in accuracy, and what SkewScout makes of it.

    bench/synchronisation/skew_scout.py --data DIR [--only divided,alike] [--copies 4] [--bin build/bin]
                                        [--runs 3] [--json]

DIR holds mnist.tar.xz. Real jobs of four workers on this machine, one in each of four domains, train a
perceptron with 128 hidden units on 60,000 digits, in so many copies and one epoch of steps of 128, by SGD at
a constant rate of 0.1 with momentum 0.9. Data are pinned: each domain has a quarter of the images, the same in
each copy, of the digits sorted by label (divided) or of those at random (alike). All-reduce, gaia with several
thresholds and no whole exchange before the end, and gaia with control.solution = "skew-scout" from a threshold of 0.2,
in turn, so many times. Accuracy is of the trained model on the 10,000 test images; bytes are those of messages
and visits, by those of messages with every element.

Goals: from 0.2, an accuracy of 0.925 with divided labels; 5 % of the bytes with alike data. At 0.01 with
alike data 30 % of the bytes and 0.5 points less accuracy than all-reduce. The exit code is 1 if one is missed by the
median, or if a record did not count exactly once.
"""
import gzip
import itertools
import json
import os
import pathlib
import random
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from quality import unpack  # noqa: E402
from runs import finish, in_place, options, progress, spread, spread_text  # noqa: E402

DOMAINS = ("a", "b", "c", "d")
IMAGES, PIXELS = 60_000, 28 * 28
THRESHOLDS = {"divided": (0.01, 0.05, 0.2), "alike": (0.01, 0.2)}
ACCURATE, FEW_BYTES, SOME_BYTES, POINTS = 0.925, 0.05, 0.30, 0.005
JOB = """
schema = 1
[job]
name = "skew"
epochs = 1
seed = {seed}
[roles.worker]
count = 4
[data]
format = "idx"
pin = "domain"
paths = {paths}
labels = {labels}
eval_paths = ["{directory}/eval-images"]
eval_labels = ["{directory}/eval-labels"]
[batch]
global = 128
[trainer]
model = "mlp"
hidden = [128]
sync = "{sync}"
optimizer = "sgd"
lr = 0.1
momentum = 0.9
threads = 1
{trainer}
[control]
solution = "{solution}"
"""


def read_gz(folder, name):
    found, = folder.glob(name + "*.gz")
    return gzip.open(found).read()


def digits_of(archives, directory):
    """The images and labels of MNIST without their headers; writes those for evaluation."""
    unpack(archives, "mnist", directory)
    folder = directory / "mnist"
    for kind in ("images", "labels"):
        digits = read_gz(folder, f"t10k-{kind}")
        (directory / f"eval-{kind}").write_bytes(digits)
    return read_gz(folder, "train-images")[16:], read_gz(folder, "train-labels")[8:]


def divide(kind, labels):
    """Which images each domain has, in any order: shards have records that follow one another."""
    rng = random.Random(11)
    order = sorted(range(IMAGES), key=lambda i: labels[i])
    if kind == "alike":
        rng.shuffle(order)
    part = IMAGES // len(DOMAINS)
    parts = [order[i * part:(i + 1) * part] for i in range(len(DOMAINS))]
    for part in parts:
        rng.shuffle(part)
    return parts


def write_parts(kind, digits, directory, copies):
    """Files of each domain, and their [[domain]]; returns (paths, labels, domains)."""
    images, labels = digits
    paths, label_paths, domains = [], [], ""
    for i, (name, part) in enumerate(zip(DOMAINS, divide(kind, labels))):
        count = copies * len(part)
        size = count.to_bytes(4, "big")
        path = directory / f"{kind}-{name}-images"
        path.write_bytes(b"\0\0\x08\x03" + size + (28).to_bytes(4, "big") * 2 + copies * b"".join(
            images[PIXELS * at:PIXELS * (at + 1)] for at in part))
        label_path = directory / f"{kind}-{name}-labels"
        label_path.write_bytes(b"\0\0\x08\x01" + size + copies * bytes(labels[at] for at in part))
        paths.append(str(path))
        label_paths.append(str(label_path))
        domains += f'[[domain]]\nname = "{name}"\nworkers = ["w{i}"]\ndata = ["{path}"]\n'
    return paths, label_paths, domains


def ways_of(kind):
    """[trainer] sync, its settings, and [control] solution of each way that is compared."""
    gaia = "gaia = {{ threshold = {}, whole_every = 1000000 }}"
    ways = {"all-reduce": ("allreduce", "", "none")}
    for threshold in THRESHOLDS[kind]:
        ways[f"{threshold:g}"] = ("gaia", gaia.format(threshold), "none")
    ways["from 0.2"] = ("gaia", gaia.format(0.2), "skew-scout")
    return ways


def told(run):
    s = run.summary
    shares = [w["updates"]["bytes_share"] for w in s["workers"] if "updates" in w]
    return {"accuracy": s["epochs"][-1]["eval"]["accuracy"],
            "bytes": statistics.mean(shares) if shares else 1,
            "steps": s["steps"], "threshold": s.get("update_threshold", {}).get("in_force", 0),
            "changes": sum(a["kind"] == "set-sync" for a in s["actions"])}


def measure(args, place):
    digits = digits_of(args.data, place.directory)
    result, good = {}, True
    for kind in args.only.split(","):
        paths, labels, domains = write_parts(kind, digits, place.directory, args.copies)
        ways = ways_of(kind)
        found = {way: {"accuracy": [], "bytes": [], "steps": [], "threshold": [], "changes": []} for way in ways}
        for turn, (way, (sync, trainer, solution)) in itertools.product(
                range(args.runs), ways.items()):
            text = JOB.format(seed=5 + turn, sync=sync, trainer=trainer, solution=solution,
                              directory=place.directory, paths=json.dumps(paths), labels=json.dumps(labels))
            run = place.run(f"{kind}-{turn}-{way.replace(' ', '-')}", text + domains)
            one = told(run)
            for key, value in one.items():
                found[way][key].append(value)
            good = good and run.exact(1, args.copies * IMAGES)
            run.forget()
            progress(f"{kind}, {way}: {one}")
        result[kind] = {way: {key: spread(values) for key, values in row.items()}
                        for way, row in found.items()}
    return {"kinds": result, "load": os.getloadavg()[0], "good": good and not missed(result)}


def missed(kinds):
    """The goals that the medians miss."""
    no = []
    if "divided" in kinds and kinds["divided"]["from 0.2"]["accuracy"]["median"] < ACCURATE:
        no.append(f"less than {ACCURATE} accurate from 0.2 with divided labels")
    if "alike" in kinds:
        rows = {way: {key: row[key]["median"] for key in row} for way, row in kinds["alike"].items()}
        if rows["from 0.2"]["bytes"] > FEW_BYTES:
            no.append(f"more than {FEW_BYTES:.0%} of the bytes from 0.2 with alike data")
        if rows["0.01"]["bytes"] > SOME_BYTES:
            no.append(f"more than {SOME_BYTES:.0%} of the bytes at 0.01 with alike data")
        if rows["0.01"]["accuracy"] < rows["all-reduce"]["accuracy"] - POINTS:
            no.append(f"more than {100 * POINTS} points less accurate at 0.01 with alike data")
    return no


def tell(result):
    for kind, rows in result["kinds"].items():
        for way, row in rows.items():
            shown = {key: {k: 100 * row[key][k] for k in ("median", "least", "most")}
                     for key in ("accuracy", "bytes")}
            print(f"{kind}, {way}: {spread_text(row['steps'], '{:.0f}')} steps, "
                  f"{spread_text(shown['bytes'])} % of the bytes, "
                  f"{spread_text(shown['accuracy'])} % accurate, threshold in the end "
                  f"{spread_text(row['threshold'], '{:.3g}')}, "
                  f"{spread_text(row['changes'], '{:.0f}')} changes")
    for goal in missed(result["kinds"]):
        print(f"missed: {goal}")


def main():
    parser = options(__doc__, 3)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="divided,alike")
    parser.add_argument("--copies", type=int, default=4)
    args = parser.parse_args()
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
