#!/usr/bin/python3
"""DeepFM with AntDT and with PyTorch DDP over Gloo, one after the other.

The same model, hyperparameters, file, global batch and number of workers.
AntDT's samples/s are those of its summary's training phases: from the first
step to the last, reading, the shard service and its journal included.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
JOB = """schema = 1
[job]
name = "peer"
epochs = {epochs}
seed = 7
[roles.worker]
count = {workers}
command = ["antdt-trainer"]
[data]
format = "criteo"
paths = ["{data}"]
hash_buckets = {buckets}
[batch]
global = {batch}
[trainer]
model = "deepfm"
optimizer = "adam"
lr = {lr}
embedding_dim = {dim}
hidden = {hidden}
threads = 1
[control]
solution = "none"
"""


def antdt(args, directory):
    job = pathlib.Path(directory) / "job.toml"
    job.write_text(JOB.format(**vars(args)))
    run = pathlib.Path(directory) / "run"
    subprocess.run([args.antdt, "run", str(job), "--run-dir", str(run)], check=True,
                   stdout=sys.stderr)
    summary = json.loads((run / "summary.json").read_text())
    return {"program": "antdt", "workers": args.workers, "batch": args.batch,
            "samples_per_second": summary["samples_per_second"],
            "seconds": summary["wall_seconds"], "lost_time": summary["lost_time"]}


def peer(args):
    command = [sys.executable, str(HERE / "ddp_deepfm.py"), "--data", args.data,
               "--workers", str(args.workers), "--batch", str(args.batch),
               "--buckets", str(args.buckets), "--dim", str(args.dim), "--lr", str(args.lr),
               "--seconds", str(args.seconds), "--hidden", *map(str, args.hidden)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="Criteo TSV")
    parser.add_argument("--antdt", default=str(HERE.parents[1] / "build/bin/antdt"))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--buckets", type=int, default=65536)
    parser.add_argument("--dim", type=int, default=8)
    parser.add_argument("--hidden", type=int, nargs="*", default=[64, 32])
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seconds", type=float, default=20, help="how long the peer runs")
    args = parser.parse_args()
    args.data = str(pathlib.Path(args.data).resolve())
    with tempfile.TemporaryDirectory() as directory:
        results = [antdt(args, directory), peer(args)]
    ratio = results[0]["samples_per_second"] / results[1]["samples_per_second"]
    print(json.dumps({"results": results, "antdt_over_pytorch": ratio}, indent=1))


if __name__ == "__main__":
    main()
