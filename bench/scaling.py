#!/usr/bin/env python3
"""Samples per second of training with 1, 2 and 4 workers at a fixed global batch.

    bench/scaling.py [--workloads deepfm-64k,deepfm-1m,mlp,resnet] [--sync allreduce,ds-sync]
                     [--before DIR] [--runs 3] [--json]

Jobs of each workload, way of synchronisation (trainer.sync) and number of workers run in turn, round
after round, each beside the same job of the programs in DIR, if that is given. Parameter servers, of
which there are two, are for the models with embedding tables. The table has medians, least and most.
Goals, on 2 cores: 2 workers make 1.5 times what 1 makes, 4 make 0.9 of what 2 make, a second compute
thread of one worker makes nothing slower, each compared within a round. With the summary's own words
the table says what the collective was and how embedding gradients were summed.

deepfm-64k and deepfm-1m: synthetic clicks, tables of 65,536 and 1,000,000 rows. mlp and resnet:
MNIST, from mnist.tar.xz in $ANTDT_TEST_DATA (default: ../shared/data). The exit code is 1 if a goal is
missed, or if a record did not count exactly once.
"""
import dataclasses
import gzip
import os
import pathlib
import struct
import tarfile

from runs import ROOT, Place, finish, in_place, options, progress, spread, spread_text

ARCHIVES = pathlib.Path(os.environ.get("ANTDT_TEST_DATA", ROOT.parent / "shared" / "data"))
SYNCS = ("allreduce", "ds-sync", "ps-bsp", "ps-ssp", "ps-asp")
# A number of workers and of compute threads: what it is compared with, and the least ratio.
GOALS = {(2, 1): ((1, 1), 1.5), (4, 1): ((2, 1), 0.9), (1, 2): ((1, 1), 1.0)}


@dataclasses.dataclass
class Workload:
    model: str
    records: int
    epochs: int
    batch: int
    buckets: int = 0  # rows of the embedding table; 0: the records are images


WORKLOADS = {
    "deepfm-64k": Workload("deepfm", 200_000, 1, 1024, 65_536),
    "deepfm-1m": Workload("deepfm", 80_000, 1, 1024, 1_000_000),
    "mlp": Workload("mlp", 60_000, 10, 256),  # a trial of threads takes most of a second
    "resnet": Workload("resnet", 2_048, 1, 128),
}

JOB = """
schema = 1
[job]
name = "scaling"
epochs = {epochs}
seed = 7
[roles.worker]
count = {workers}
{servers}
[data]
{data}
[batch]
global = {batch}
[trainer]
model = "{model}"
sync = "{sync}"
optimizer = "adam"
lr = 1e-3
threads = {threads}
{extra}
[control]
solution = "none"
[checkpoint]
every = "0s"
"""


def first_images(archive, to, records):
    """Writes the first images of MNIST and their labels as idx files."""
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            name = pathlib.Path(member.name).name.removesuffix(".gz")
            if not name.startswith("train-"):
                continue
            content = tar.extractfile(member).read()
            if member.name.endswith(".gz"):
                content = gzip.decompress(content)
            header = 4 + 4 * content[3]  # the magic number, whose last byte counts the dimensions
            sizes = struct.unpack(f">{content[3]}I", content[4:header])
            each = (len(content) - header) // sizes[0]
            kept = struct.pack(">I", records) + content[8:header + records * each]
            (to / name).write_bytes(content[:4] + kept)


def data_of(place, name, work):
    """Makes a workload's data once, and returns its keys of [data]."""
    directory = place.directory / f"data-{work.records}-{'clicks' if work.buckets else 'images'}"
    if work.buckets:
        if not directory.exists():
            place.antdt("data", "synth", "criteo", "--rows", work.records, "--seed", 7, "--out",
                        directory)
        return f'format = "criteo"\npaths = ["{directory}/train.tsv"]\nhash_buckets = {work.buckets}'
    archive = ARCHIVES / "mnist.tar.xz"
    if not archive.exists():
        raise SystemExit(f"{name} needs {archive}: set ANTDT_TEST_DATA to the directory that has "
                         "it, or name other --workloads")
    if not directory.exists():
        directory.mkdir()
        first_images(archive, directory, work.records)
    return (f'format = "idx"\npaths = ["{directory}/train-images-idx3-ubyte"]\n'
            f'labels = ["{directory}/train-labels-idx1-ubyte"]')


def train(args, place, name, case):
    sync, workers, threads = case
    work = WORKLOADS[name]
    run = place.run(f"{name}-{sync}-{workers}-{threads}", JOB.format(
        epochs=work.epochs, workers=workers, batch=work.batch, model=work.model, sync=sync,
        threads=threads, data=data_of(place, name, work),
        servers="[roles.server]\ncount = 2" if on_servers(sync) else "",
        extra="\n".join(args.trainer) if work.buckets else ""))
    steps = [w.get("embedding_steps") for w in run.summary["workers"]]
    found = {"speed": run.speed, "exact": run.exact(work.epochs, work.records),
             "collective": run.summary.get("collective", ""), "embedding_steps": steps[0]}
    run.forget()
    return found


def on_servers(sync):
    return sync.startswith("ps-")


def cases(args, work):
    """A workload's ways of synchronisation, with numbers of workers and of compute threads."""
    syncs = [sync for sync in args.sync if work.buckets or not on_servers(sync)]
    found = [(sync, workers, 1) for sync in syncs for workers in args.workers]
    return found + [(sync, 1, 2) for sync in syncs if sync == "allreduce" and args.threads]


def measure(args, place):
    places = {"now": place}
    if args.before:
        (place.directory / "before").mkdir()
        places = {"before": Place(place.directory / "before", args.before), "now": place}
    found, load = {}, []
    for number in range(args.runs):
        load.append(os.getloadavg()[0])
        for name in args.workloads:
            for case in cases(args, WORKLOADS[name]):
                for build, at in places.items():
                    result = train(args, at, name, case)
                    found.setdefault((name, *case), {}).setdefault(build, []).append(result)
                    progress(f"round {number}: {name}, {case[0]}, {case[1]} workers, {case[2]} threads, "
                             f"{build}: {result['speed']:,.0f} samples/s")
    rows = [row_of(found, key) for key in found]
    return {"load": load, "rows": rows,
            "good": all(r["exact"] and r["reached"] is not False for r in rows)}


def ratios(found, key, build):
    """A case's speeds over those with which its goal compares it, by rounds; None without a goal."""
    name, sync, *group = key
    goal = GOALS.get(tuple(group))
    than = found.get((name, sync, *goal[0])) if goal else None
    if not than:
        return None
    return spread([a["speed"] / b["speed"] for a, b in zip(found[key][build], than[build])])


def row_of(found, key):
    name, sync, workers, threads = key
    runs = found[key]
    ratio = ratios(found, key, "now")
    limit = GOALS[workers, threads][1] if ratio else None
    last = runs["now"][-1]
    return {"workload": name, "sync": sync, "workers": workers, "threads": threads,
            "speed": {build: spread([r["speed"] for r in all_of]) for build, all_of in runs.items()},
            "ratio_before": ratios(found, key, "before") if "before" in runs else None,
            "ratio": ratio, "limit": limit, "reached": ratio["median"] >= limit if ratio else None,
            "exact": all(r["exact"] for all_of in runs.values() for r in all_of),
            "collective": last["collective"], "embedding_steps": last["embedding_steps"]}


def verdict(row):
    if not row["exact"]:
        return "records did NOT count once"
    if row["ratio"] is None:
        return ""
    than = GOALS[row["workers"], row["threads"]][0]
    of = "1 thread" if row["threads"] > 1 else f"{than[0]}"
    return f"{row['limit']} of {of}{'' if row['reached'] else ', MISSED'}"


def sums_text(row):
    steps = row["embedding_steps"]
    sums = [row["collective"]] if row["collective"] else []
    if steps:
        sums.append(f"rows in {steps['rows']} of {steps['rows'] + steps['whole_table']} steps")
    return "; ".join(sums)


def tell(result):
    print("load average at the beginning of each round:",
          " ".join(f"{load:.1f}" for load in result["load"]))
    print("| workload | sync | workers | before | now | ratio before | ratio now | goal | summed by |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in result["rows"]:
        workers = f"{row['workers']}" + (", 2 threads" if row["threads"] > 1 else "")
        speeds = [spread_text(row["speed"][build], "{:,.0f}") if build in row["speed"] else ""
                  for build in ("before", "now")]
        of = [spread_text(row[r]) if row[r] else "" for r in ("ratio_before", "ratio")]
        print("| " + " | ".join([row["workload"], row["sync"], workers, *speeds, *of, verdict(row),
                                 sums_text(row)]) + " |")


def main():
    def names(of):
        def read(text):
            found = text.split(",")
            if unknown := set(found) - set(of):
                raise SystemExit(f"{', '.join(sorted(unknown))}: use {', '.join(of)}")
            return found
        return read
    parser = options(__doc__, runs=3)
    parser.add_argument("--before", type=pathlib.Path, help="where the antdt to compare with is")
    parser.add_argument("--workloads", type=names(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--sync", type=names(SYNCS), default=list(SYNCS))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--no-threads", dest="threads", action="store_false",
                        help="without the jobs of a second compute thread")
    parser.add_argument("--trainer", nargs="+", default=[], metavar="'KEY = VALUE'",
                        help="more keys of [trainer], of the models for clicks")
    args = parser.parse_args()
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
