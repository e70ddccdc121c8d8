#!/usr/bin/env python3
"""What a slow link costs a step under all-reduce and in groups that change with each step (ds-sync).

    bench/synchronisation/slow_link.py --data DIR [--bin build/bin] [--runs 3] [--json]

DIR holds mnist.tar.xz. Real jobs of nine workers on this machine over tcp train a perceptron of 203,530
parameters on 60,000 digits, 42 steps of 1,440. Slow is nothing, the link between two neighbours of the
ring, or each link of one worker: 10 ms and 5 MB/s in each direction, made by [[inject]], so that a step
mostly waits and few processors do not matter. All-reduce and ds-sync in turn, so many times.

The goal: with one slow link, a step of ds-sync takes at most half of the time of all-reduce.
"""
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from runs import finish, in_place, options, progress, spread, spread_text  # noqa: E402
from synchronisation.sync_quality import JOB, SYNCS, write_digits  # noqa: E402

WORKERS, BATCH, RECORDS = 9, 1440, 60000
SLOW = {"nothing": None, "a link": '["w1"]', "a worker's links": '["*"]'}


def job(data, sync, to):
    text = JOB.format(epochs=1, seed=5, workers=WORKERS, data=data, batch=BATCH, model="mlp",
                      sync=sync, optimizer="sgd", lr=0.1,
                      trainer='hidden = [256]\ncollective = "tcp"')
    if to is None:
        return text
    return text + (f'[[inject]]\nworkers = ["w0"]\nto_workers = {to}\nboth_ways = true\n'
                   f'latency = "10ms"\nbandwidth = "5000000B"\n')


def measure(args, place):
    data = write_digits(args.data, place.directory)
    steps = RECORDS / BATCH
    ms = {slow: {sync: [] for sync in SYNCS} for slow in SLOW}
    sent = {sync: [] for sync in SYNCS}
    for turn in range(args.runs):
        for slow, to in SLOW.items():
            for sync in SYNCS:
                run = place.run(f"{turn}-{len(sent[sync])}-{sync}", job(data, sync, to))
                ms[slow][sync].append(1000 * run.summary["training_seconds"] / steps)
                traffic = run.summary["traffic"]
                sent[sync].append((traffic["gradients_bytes"] + traffic["parameters_bytes"])
                                  / steps / WORKERS)
                run.forget()
                progress(f"{slow}, {sync}: {ms[slow][sync][-1]:.1f} ms a step")
    rows = {slow: {sync: spread(found) for sync, found in by_sync.items()}
            for slow, by_sync in ms.items()}
    link = rows["a link"]
    return {"ms": rows, "bytes": {sync: statistics.median(all_) for sync, all_ in sent.items()},
            "good": link["ds-sync"]["median"] <= link["allreduce"]["median"] / 2}


def tell(result):
    for slow, row in result["ms"].items():
        print(f"{slow} slow: " + ", ".join(f"{sync} {spread_text(row[sync], '{:.1f}')} ms a step"
                                           for sync in SYNCS))
    print("sent by a worker in a step: " + ", ".join(
        f"{sync} {result['bytes'][sync] / 1e6:.2f} MB" for sync in SYNCS))


def main():
    parser = options(__doc__, runs=3)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="where the archive is")
    args = parser.parse_args()
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
