#!/usr/bin/env python3
"""How soon a job trains after `antdt run`, and how soon a killed worker trains again.

Runs DeepFM with 4 workers several times. Measured from the start of `antdt run`: the first status
that tells of a step. Measured from a worker's SIGKILL: the first status in which its next process has
a rank. Goals: 1.5 s and 1.0 s. A status is asked for every 20 ms, and takes about as long itself.
"""
import os
import signal
import time

from runs import finish, in_place, options, progress, spread, spread_text

JOB = """
schema = 1
[job]
name = "first-step"
epochs = 1000
[roles.worker]
count = 4
[data]
format = "criteo"
paths = ["{data}/train.tsv"]
hash_buckets = 65536
[batch]
global = 1024
[trainer]
model = "deepfm"
[failure]
budgets = {{ signal = 10 }}
"""


def whole(status):
    return status["state"] == "training" and all(w["rank"] is not None for w in status["workers"])


def measure(args, place):
    place.synth(50_000, 7)
    firsts, backs = [], []
    for run in range(args.runs):
        began = time.monotonic()
        job = place.start(f"run{run}", JOB.format(data=place.directory / "data"))
        while not (job.directory / "job.json").exists():  # before, there is nothing to ask
            time.sleep(0.005)
        job.until(lambda s: s["step"] > 0, 30, "the first step")
        firsts.append(time.monotonic() - began)
        before = job.until(whole, 30, "all workers have a rank")
        victim = before["workers"][run % 4]
        os.kill(victim["pid"], signal.SIGKILL)
        killed = time.monotonic()
        job.until(lambda s: whole(s) and s["workers"][run % 4]["pid"] != victim["pid"], 30,
                  f"{victim['id']} has a rank again")
        backs.append(time.monotonic() - killed)
        job.stop()
        progress(f"run {run}: first step after {firsts[-1]:.2f} s, back after {backs[-1]:.2f} s")
    first, back = spread(firsts), spread(backs)
    return {"first_step_s": first, "back_s": back,
            "good": first["median"] <= 1.5 and back["median"] <= 1.0}


def tell(result):
    print("first step after, s:", spread_text(result["first_step_s"]))
    print("a killed worker has a rank again after, s:", spread_text(result["back_s"]))


if __name__ == "__main__":
    parsed = options(__doc__, runs=7).parse_args()
    finish(parsed, in_place(parsed, measure), tell)
