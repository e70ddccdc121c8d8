#!/usr/bin/env python3
"""What control.share_steps costs where steps are short and no worker is slow.

    bench/shared_steps.py [--batches 1024,8192] [--steps 1200] [--before DIR] [--runs 3] [--json]

DeepFM on 200,000 synthetic clicks (65,536 rows), four workers of one host, with each global batch: jobs with
and without shared steps in turn, round after round, and with them by the programs in DIR, if that is given.
Workers compare shared steps with others and stop sharing where that is slower; the table says what they found.
Goal: 0.995 of the speed without shared steps, in the median of the rounds. The exit code is 1 if it is missed,
or if a record did not count exactly once.
"""
import json
import os
import pathlib

from runs import Place, finish, in_place, options, progress, spread, spread_text

RECORDS, WORKERS, GOAL = 200_000, 4, 0.995
JOB = """
schema = 1
[job]
name = "shared-steps"
epochs = {epochs}
seed = 7
[roles.worker]
count = {workers}
[data]
format = "criteo"
paths = ["{data}/train.tsv"]
hash_buckets = 65536
[batch]
global = {batch}
[trainer]
model = "deepfm"
optimizer = "adam"
lr = 1e-3
[control]
solution = "none"
share_steps = {shares}
[checkpoint]
every = "0s"
"""


def said(run):
    """What the workers found when they compared both kinds of steps: the texts of the run's events."""
    lines = (run.directory / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [e["text"] for e in map(json.loads, lines) if e["kind"] == "sharing"]


def trained(args, place, name, batch, shares):
    epochs = max(1, args.steps * batch // RECORDS)
    run = place.run(name, JOB.format(epochs=epochs, workers=WORKERS, data=args.data, batch=batch,
                                     shares=json.dumps(shares)))
    result = {"speed": run.speed, "exact": run.exact(epochs, RECORDS), "said": said(run)}
    run.forget()
    return result


def measure(args, place):
    place.synth(RECORDS, 7)
    args.data = place.directory / "data"
    kinds = {"alone": (place, False), "shared": (place, True)}
    if args.before:
        (place.directory / "before").mkdir()
        kinds["before"] = (Place(place.directory / "before", args.before), True)
    rows, load = [], []
    for batch in args.batches:
        found = {kind: [] for kind in kinds}
        for number in range(args.runs):
            load.append(os.getloadavg()[0])
            for kind, (at, shares) in kinds.items():
                found[kind].append(trained(args, at, f"{kind}-{batch}-{number}", batch, shares))
                progress(f"round {number}, batch {batch}, {kind}: {found[kind][-1]['speed']:,.0f} samples/s")
        ratios = {kind: spread([r["speed"] / a["speed"] for r, a in zip(found[kind], found["alone"])])
                  for kind in kinds if kind != "alone"}
        rows.append({"batch": batch, "ratios": ratios,
                     "speed": {kind: spread([r["speed"] for r in runs]) for kind, runs in found.items()},
                     "exact": all(r["exact"] for runs in found.values() for r in runs),
                     "reached": ratios["shared"]["median"] >= GOAL,
                     "said": [text for r in found["shared"] for text in r["said"]]})
    return {"load": load, "rows": rows, "good": all(r["exact"] and r["reached"] for r in rows)}


def tell(result):
    print("load average at the beginning of each round:", " ".join(f"{load:.1f}" for load in result["load"]))
    kinds = list(result["rows"][0]["speed"])
    print("| global batch | " + " | ".join(kinds) + " | " +
          " | ".join(f"{kind} / alone" for kind in kinds if kind != "alone") + f" | goal {GOAL} |")
    print("|---" * (2 * len(kinds) + 1) + "|")
    for row in result["rows"]:
        speeds = [spread_text(row["speed"][kind], "{:,.0f}") for kind in kinds]
        ratios = [spread_text(ratio, "{:.3f}") for ratio in row["ratios"].values()]
        verdict = "" if row["reached"] else "missed"
        verdict = verdict if row["exact"] else "records did NOT count once"
        print("| " + " | ".join([f"{row['batch']:,}", *speeds, *ratios, verdict]) + " |")
    for row in result["rows"]:
        for text in row["said"]:
            print(f"batch {row['batch']:,}: {text}")


def main():
    parser = options(__doc__, 3)
    parser.add_argument("--batches", type=lambda text: [int(b) for b in text.split(",")], default=[1024, 8192])
    parser.add_argument("--steps", type=int, default=1200, help="of each job (1200)")
    parser.add_argument("--before", type=pathlib.Path, help="where the programs of another build are")
    args = parser.parse_args()
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
