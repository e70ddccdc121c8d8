#!/usr/bin/env python3
"""What Hogwild threads gain and cost (sync = "shadow-easgd", trainer.shadow.threads): one worker and one server.

    bench/synchronisation/hogwild.py [--rounds 3] [--seeds 5]

Prints samples/s with one thread, with two inside of operations (trainer.threads) and with two that train one replica, in
turn, for DLRM and DeepFM on made-up clicks; then log loss and AUC of DLRM on Criteo after each epoch, with one thread and
with two. Criteo is criteo_kaggle_10k.tar.xz in $ANTDT_TEST_DATA (default: ../shared/data).
"""
import argparse
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from quality import write_clicks  # noqa: E402
from runs import ROOT, Place, spread, spread_text  # noqa: E402

ARCHIVES = pathlib.Path(os.environ.get("ANTDT_TEST_DATA", ROOT.parent / "shared" / "data"))
RECORDS, EPOCHS = 120_000, 4
ONE, INSIDE, TOGETHER = "one thread", "trainer.threads = 2", "trainer.shadow.threads = 2"
KINDS = {ONE: "", INSIDE: "threads = 2", TOGETHER: "shadow = { threads = 2 }"}
JOB = """schema = 1
[job]
name = "hogwild"
epochs = {epochs}
seed = {seed}
[roles.worker]
count = 1
[roles.server]
count = 1
[data]
format = "criteo"
{data}
hash_buckets = 65536
[batch]
global = {batch}
[trainer]
model = "{model}"
sync = "shadow-easgd"
optimizer = "adam"
lr = 1e-3
{kind}
[control]
solution = "none"
[checkpoint]
every = "0s"
"""


def train(place, name, records, **job):
    job["kind"] = KINDS[job["kind"]]
    run = place.run(name, JOB.format(**job))
    if not run.exact(job["epochs"], records):
        sys.exit(f"{name}: not every record counted once")
    run.forget()
    return run


def measure_speed(place, rounds):
    place.synth(RECORDS, 7)
    data = f'paths = ["{place.directory}/data/train.tsv"]'
    speeds = {}
    for index in range(rounds):
        for model in ("dlrm", "deepfm"):
            for kind in KINDS:
                run = train(place, f"{model}-{list(KINDS).index(kind)}-{index}", RECORDS, epochs=2, seed=7,
                            batch=1024, model=model, kind=kind, data=data)
                speeds.setdefault((model, kind), []).append(run.speed)
    for (model, kind), values in speeds.items():
        print(f"{model}, {kind}: {spread_text(spread(values), '{:,.0f}')} samples/s", flush=True)


def measure_quality(place, seeds):
    where = pathlib.Path(place.directory)
    write_clicks(ARCHIVES, where)
    data = f'paths = ["{where}/train.tsv"]\neval_paths = ["{where}/eval.tsv"]'
    found = {ONE: [], TOGETHER: []}
    for seed in range(1, seeds + 1):
        for kind, runs in found.items():
            run = train(place, f"quality-{list(KINDS).index(kind)}-{seed}", 8000, epochs=EPOCHS, seed=seed,
                        batch=256, model="dlrm", kind=kind, data=data)
            runs.append([epoch["eval"] for epoch in run.summary["epochs"]])
    for kind, runs in found.items():
        for epoch in range(EPOCHS):
            values = {name: spread_text(spread([run[epoch][name] for run in runs]), "{:.4f}")
                      for name in ("log_loss", "auc")}
            print(f"dlrm, {kind}, epoch {epoch + 1}: log loss {values['log_loss']}, AUC {values['auc']}",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hogwild-") as directory:
        place = Place(directory)
        measure_speed(place, options.rounds)
        measure_quality(place, options.seeds)


if __name__ == "__main__":
    main()
