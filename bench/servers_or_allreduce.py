#!/usr/bin/env python3
"""Whether parameter servers are as fast as all-reduce if no worker is slow.

    bench/servers_or_allreduce.py [--runs 5] [--tables 1000000,10000000] [--sync ps-asp]
                                  [--records 1000000] [--bin build/bin] [--json]

DeepFM with embeddings of 8 and Adam, four workers, batches of 4,096, one epoch over clicks whose
frequent and rare categories fill tables of this many rows (bench/clicks.py). Pairs of jobs follow
one another in alternating order: all-reduce with sparse gradients of the embeddings, and two
servers. Speed is samples per second of training, without the start of the processes and without
writing the final model. The goal is a median ratio of 0.9 with a table of at most 10^6 rows, and of
more than 1 with a larger one.

The exit code is 1 if a goal is missed, or if a record did not count exactly once. Ten minutes for
both tables, 8 GB of memory and 4 GB of disk; the machine must be idle.
"""
import clicks
from runs import finish, in_place, options, progress, spread, spread_text

SMALL, LEAST_SMALL, LEAST_LARGE = 10**6, 0.9, 1.0
JOB = """
schema = 1
[job]
name = "speed"
seed = {seed}
[roles.worker]
count = 4
{servers}
[data]
format = "criteo"
paths = ["{data}"]
hash_buckets = {table}
[batch]
global = 4096
adjust = "size"
[trainer]
model = "deepfm"
sync = "{sync}"
optimizer = "adam"
lr = 1e-3
embedding_gradients = "{gradients}"
[control]
solution = "none"
[checkpoint]
every = "0s"
"""


def train(args, place, sync, table, number):
    servers = sync != "allreduce"
    run = place.run(f"{sync}-{table}-{number}",
                    JOB.format(seed=number + 1, data=place.directory / f"{table}.tsv", table=table,
                               sync=sync, gradients="dense" if servers else "sparse",
                               servers="[roles.server]\ncount = 2" if servers else ""))
    found = {"speed": run.speed, "seconds": run.summary["training_seconds"],
             "exact": run.exact(1, args.records),
             "rows": sum(s["rows"] for s in run.summary.get("servers", []))}
    run.forget()
    progress(f"{sync}, table of {table:,}: {found['speed']:,.0f} samples/s")
    return found


def pairs(args, place, table):
    rng = clicks.seeded(table)
    clicks.write(place.directory / f"{table}.tsv",
                 clicks.frequent_and_rare(args.records, rng, table), rng)
    runs = {"allreduce": [], args.sync: []}
    for number in range(args.runs):
        for sync in sorted(runs, reverse=number % 2 == 1):
            runs[sync].append(train(args, place, sync, table, number))
    ratio = spread([ps["speed"] / allreduce["speed"]
                    for ps, allreduce in zip(runs[args.sync], runs["allreduce"])])
    least = LEAST_SMALL if table <= SMALL else LEAST_LARGE
    return {"table": table, "runs": runs, "ratio": ratio, "asked": least,
            "reached": ratio["median"] >= least if table <= SMALL else ratio["median"] > least,
            "exact": all(run["exact"] for found in runs.values() for run in found)}


def measure(args, place):
    tables = [pairs(args, place, table) for table in args.tables]
    return {"sync": args.sync, "records": args.records, "tables": tables,
            "good": all(table["reached"] and table["exact"] for table in tables)}


def tell(result):
    for table in result["tables"]:
        for sync, runs in table["runs"].items():
            print(f"table of {table['table']:,}, {sync:9}",
                  spread_text(spread([run["speed"] for run in runs]), "{:,.0f}"), "samples/s")
        print(f"{result['sync']} over all-reduce: {spread_text(table['ratio'])}; asked for: "
              f"{table['asked']}{'' if table['reached'] else ', NOT REACHED'}"
              f"{'' if table['exact'] else '; records did NOT count once'}; the servers had "
              f"{table['runs'][result['sync']][0]['rows']:,} rows, two for each category")


def main():
    parser = options(__doc__, runs=5)
    parser.add_argument("--tables", metavar="ROWS,...", default=[10**6, 10**7],
                        type=lambda text: [int(rows) for rows in text.split(",")])
    parser.add_argument("--sync", default="ps-asp", choices=["ps-bsp", "ps-ssp", "ps-asp"])
    parser.add_argument("--records", type=int, default=1000000, help="to train (1,000,000)")
    args = parser.parse_args()
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
