#!/usr/bin/env python3
"""Samples per second of training with 1, 2 and 4 workers at a fixed global batch.

A job is run with each number of workers and each value of trainer.embedding_gradients in turn,
several times, and compared with one worker of the same round. Goal for DeepFM with 65,536 rows and
a global batch of 1,024, on 2 cores: 2 workers make 1.5 times what one makes, and 4 at least 0.9 of
what 2 make.
"""
import sys
import tempfile

from runs import Place, options, spread, spread_text

JOB = """
schema = 1
[job]
name = "scaling"
epochs = {epochs}
seed = 7
[roles.worker]
count = {workers}
[data]
format = "criteo"
paths = ["{data}/train.tsv"]
hash_buckets = {buckets}
[batch]
global = {batch}
[trainer]
model = "{model}"
optimizer = "{optimizer}"
lr = 1e-3
threads = {threads}
{gradients}
"""


def main():
    parser = options(__doc__, runs=3)
    parser.add_argument("--rows", type=int, default=200_000, help="records of an epoch")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--model", default="deepfm")
    parser.add_argument("--buckets", type=int, default=65536, help="rows of the embedding table")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gradients", nargs="+", default=["default"],
                        help="values of trainer.embedding_gradients; default: what antdt decides")
    args = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        place = Place(directory, args.bin)
        place.synth(args.rows, 7)
        for run in range(args.runs):
            for gradients in args.gradients:
                for workers in args.workers:
                    key = "" if gradients == "default" else f'embedding_gradients = "{gradients}"'
                    done = place.run(f"{gradients}-{workers}-{run}", JOB.format(
                        data=place.directory / "data", workers=workers, epochs=args.epochs,
                        model=args.model, buckets=args.buckets, batch=args.batch,
                        optimizer=args.optimizer, threads=args.threads, gradients=key))
                    if not done.exact(args.epochs, args.rows):
                        raise SystemExit(f"{done.directory}: the audit is not exact")
                    found.setdefault((gradients, workers), []).append(done.speed)
                    print(f"run {run}: {gradients}, {workers} workers: {done.speed:,.0f} samples/s",
                          file=sys.stderr)
                    done.forget()
    print("gradients | workers | samples/s | of one worker")
    for (gradients, workers), speeds in found.items():
        one = found.get((gradients, 1), speeds)
        print(" | ".join((gradients, str(workers), spread_text(spread(speeds), "{:,.0f}"),
                          spread_text(spread([a / b for a, b in zip(speeds, one)])))))


if __name__ == "__main__":
    main()
