#!/usr/bin/env python3
"""How well antdt plan predicts the time of a step, and whether it chooses well.

    bench/plan.py [--runs 3] [--situations mlp-2,deepfm-64k-4,...] [--bin build/bin] [--json]

For each situation (a model, a number of workers, links as they are or slowed down by a drill) antdt
plan makes its predictions, and then each way of synchronisation that it could predict is trained,
--runs times in turn, also those that a plan compares without recommending them. What is measured is the
time of a step over one epoch or more of training, without the start of the processes, as the median over
the runs. Goals: a median error of at most 25 % over all ways of all situations, and in each situation a
chosen way within 10 % of the fastest that the plan may choose.

The data are those of bench/scaling.py; for mlp it needs MNIST. The exit code is 1 if a goal is missed,
or if a record did not count exactly once. Some 15 minutes; whatever else runs shows in the errors.
"""
import dataclasses
import json
import os
import statistics

from runs import Finished, finish, in_place, options, progress, spread, spread_text
from scaling import JOB, WORKLOADS, data_of
from synchronisation.slow_domains import two_domains

MEDIAN_ERROR, CHOSEN_WITHIN = 0.25, 1.10


@dataclasses.dataclass
class Situation:
    workload: str
    workers: int
    records: int  # of an epoch
    epochs: int
    drill: str = ""  # more keys of [[inject]] for all workers
    domains: bool = False  # two, with links of 100 Mbit/s and 50 ms between them, and SGD


SLOW = 'latency = "1ms"\nbandwidth = "50MB"'
FAR = 'latency = "5ms"'
SITUATIONS = {
    "mlp-1": Situation("mlp", 1, 60_000, 3),
    "mlp-2": Situation("mlp", 2, 60_000, 3),
    "mlp-4": Situation("mlp", 4, 60_000, 3),
    "mlp-2-slow": Situation("mlp", 2, 30_000, 1, SLOW),
    "deepfm-64k-1": Situation("deepfm-64k", 1, 200_000, 2),
    "deepfm-64k-2": Situation("deepfm-64k", 2, 200_000, 2),
    "deepfm-64k-4": Situation("deepfm-64k", 4, 200_000, 2),
    "deepfm-64k-2-slow": Situation("deepfm-64k", 2, 100_000, 1, SLOW),
    "deepfm-64k-4-slow": Situation("deepfm-64k", 4, 100_000, 1, SLOW),
    "deepfm-64k-4-far": Situation("deepfm-64k", 4, 100_000, 1, FAR),
    "deepfm-1m-2": Situation("deepfm-1m", 2, 80_000, 2),
    "deepfm-1m-4": Situation("deepfm-1m", 4, 80_000, 2),
    "deepfm-1m-2-slow": Situation("deepfm-1m", 2, 80_000, 1, SLOW),
    "resnet-2": Situation("resnet", 2, 2_048, 1),
    "mlp-4-domains": Situation("mlp", 4, 15_360, 1, domains=True),
    "mlp-8-domains": Situation("mlp", 8, 15_360, 1, domains=True),
    "deepfm-64k-4-domains": Situation("deepfm-64k", 4, 40_000, 1, domains=True),
}

def job_of(place, situation):
    work = dataclasses.replace(WORKLOADS[situation.workload], records=situation.records)
    inject = f'[[inject]]\nworkers = ["*"]\n{situation.drill}' if situation.drill else ""
    if situation.domains:
        inject = two_domains(situation.workers)
    job = JOB.format(epochs=situation.epochs, workers=situation.workers, batch=work.batch,
                     model=work.model, sync="allreduce", servers="", threads=1, extra=inject,
                     data=data_of(place, situation.workload, work))
    if situation.domains:  # gaia is for SGD
        job = job.replace('optimizer = "adam"\nlr = 1e-3', 'optimizer = "sgd"\nlr = 0.05')
    return job, work.batch


def train(place, job, situation, batch, prediction):
    run = place.directory / "run"
    # Ways that a plan compares and does not recommend have an empty sync.
    settings = [f"trainer.sync={prediction['sync'] or prediction['strategy']}",
                f"roles.server.count={prediction['servers']}"]
    if prediction["strategy"] == "allreduce sparse":
        settings.append("trainer.embedding_gradients=sparse")
    words = [word for setting in settings for word in ("--set", setting)]
    place.antdt("run", job, "--run-dir", run, *words)
    found = Finished(place, run)
    exact = found.exact(situation.epochs, situation.records)
    found.forget()
    return batch / found.speed, exact


def judge(args, place, name):
    situation = SITUATIONS[name]
    text, batch = job_of(place, situation)
    job = place.write(name, text)
    plan = json.loads(place.antdt("plan", job, "--json").stdout)
    # Of shadow-easgd a plan knows only the longest time of a step. With Adam ds-sync sends three times
    # the whole table, for minutes.
    ways = [p for p in plan["predictions"] if "step_seconds" in p
            and p["strategy"] != "shadow-easgd"
            and (p["strategy"] != "ds-sync" or situation.domains)]
    measured = [[] for _ in ways]
    exact = True
    for _ in range(args.runs):
        for way, times in zip(ways, measured):
            seconds, once = train(place, job, situation, batch, way)
            times.append(seconds)
            exact = exact and once
    rows = []
    for way, times in zip(ways, measured):
        took = spread(times)
        rows.append({"situation": name, "way": way["strategy"], "servers": way["servers"],
                     "offered": bool(way["sync"]), "basis": way["basis"],
                     "predicted": way["step_seconds"], "measured": took,
                     "error": abs(way["step_seconds"] - took["median"]) / took["median"]})
        progress(f"{name}: {way['strategy']}: predicted {1000 * way['step_seconds']:.2f} ms, measured "
                 f"{spread_text({k: 1000 * took[k] for k in ('median', 'least', 'most')})} ms")
    chosen = plan["recommended"]
    best = min(row["measured"]["median"] for row in rows if row["offered"])
    of_chosen = next(row["measured"]["median"] for row in rows
                     if (row["way"], row["servers"]) == (chosen["strategy"], chosen["servers"]))
    return {"situation": name, "rows": rows, "chosen": chosen["strategy"],
            "chosen_of_best": of_chosen / best, "plan_seconds": plan["seconds"],
            "load": os.getloadavg()[0], "exact": exact}


def measure(args, place):
    found = [judge(args, place, name) for name in args.situations]
    rows = [row for situation in found for row in situation["rows"]]
    errors = {"all": [row["error"] for row in rows]}
    for row in rows:
        errors.setdefault(row["basis"], []).append(row["error"])
    medians = {basis: statistics.median(values) for basis, values in errors.items()}
    within = sum(s["chosen_of_best"] <= CHOSEN_WITHIN for s in found)
    return {"situations": found, "errors": {b: spread(v) for b, v in errors.items()},
            "median_error": medians["all"], "chosen_within": within,
            "good": medians["all"] <= MEDIAN_ERROR and within == len(found)
                    and all(s["exact"] for s in found)}


def tell(result):
    print("| situation | way | basis | predicted ms | measured ms | error | |")
    print("|---|---|---|---|---|---|---|")
    for situation in result["situations"]:
        for row in situation["rows"]:
            servers = f", {row['servers']} servers" if row["servers"] else ""
            took = {k: 1000 * row["measured"][k] for k in ("median", "least", "most")}
            chosen = "chosen" if row["way"] == situation["chosen"] else ""
            print(f"| {row['situation']} | {row['way']}{servers} | {row['basis']} | "
                  f"{1000 * row['predicted']:.2f} | {spread_text(took)} | {100 * row['error']:.0f} % | "
                  f"{chosen} |")
    print()
    for basis, errors in result["errors"].items():
        print(f"relative error, {basis} ({len(errors['values'])}): {spread_text(errors)}")
    for s in result["situations"]:
        print(f"{s['situation']}: {s['chosen']} was chosen, {s['chosen_of_best']:.2f} times the "
              f"fastest; planned in {s['plan_seconds']:.0f} s; load average {s['load']:.1f}")
    print(f"chosen within 10 % of the fastest: {result['chosen_within']} of "
          f"{len(result['situations'])}")


def main():
    parser = options(__doc__, runs=3)
    parser.add_argument("--situations", default=list(SITUATIONS),
                        type=lambda text: [name for name in text.split(",")
                                           if name in SITUATIONS or parser.error(f"no {name}")])
    args = parser.parse_args()
    finish(args, in_place(args, measure), tell)


if __name__ == "__main__":
    main()
