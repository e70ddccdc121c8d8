#!/usr/bin/env python3
"""Makes stragglers of four kinds, one after another, and counts how often the right worker
is named first, with the right cause, in time.

    ANTDT_BIN=build/bin bench/culprits.py [--cases 100] [--workers 8] [--seed 1] [--json]

A job of emulated workers (20 ms a step) runs on this machine with a transient window of 1 s. A case
picks a worker, a kind and a strength by the seed, injects the fault with `antdt inject`, and reads
`antdt status --json` until a straggler is named, for at most the window and 2 s. Then it removes
the fault, and waits until no straggler is named. A case that began while one was named is not
counted. The machine must be idle, because a worker that other programs slow down is a straggler,
too.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ANTDT = str(pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin")) / "antdt")
WINDOW_S = 1
# The injections in rising strength, and the expected cause.
KINDS = {
    "compute": ("slowdown={:.2f}", 1.5, 4),
    "data": ('data_delay="{:.0f}ms"', 10, 60),
    "network": ('latency="{:.1f}ms"', 3, 20),
    "throttled": ("throttle={:.2f}", 0.5, 0.2),
}
JOB = """
schema = 1
[job]
name = "culprits"
[roles.worker]
count = {workers}
[data]
format = "index"
records = 1000000000
[batch]
global = {batch}
[control]
solution = "none"
transient_window = "{window}s"
persistent_window = "60s"
[trainer]
model = "emulated"
[emulated]
parameters = 1024
noise = 0.05
[[emulated.device]]
class = "any"
flat = "20ms"
flat_until = 16
"""


def antdt(*args):
    return subprocess.run([ANTDT, *map(str, args)], capture_output=True, text=True, check=True)


def stragglers(run):
    status = json.loads(antdt("status", run, "--json").stdout)
    return {w["id"]: w["straggler"]["cause"] for w in status["workers"] if w["straggler"]}


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def play(run, kind, worker, how):
    """The result of one case."""
    if not wait_until(lambda: not stragglers(run), 30):
        return {"outcome": "not counted"}
    time.sleep(WINDOW_S)
    if stragglers(run):
        return {"outcome": "not counted"}
    antdt("inject", run, f'workers=["{worker}"]', how)
    began = time.monotonic()
    first = {}
    causes = []
    outcome = "nobody named in time"
    while time.monotonic() - began < WINDOW_S + 2:
        found = stragglers(run)
        if found and not first:
            first = found
            named_s = time.monotonic() - began
            outcome = "named first" if list(found) == [worker] else "another named"
        if worker in found:
            causes.append(found[worker])
        if set(found) - {worker}:
            outcome = "another named"
        if causes and causes[-1] == kind:
            break
    antdt("inject", run, "--clear")
    result = {"outcome": outcome, "first": first, "cause": causes[-1] if causes else None}
    if first:
        result["named_s"] = named_s
        result["caused_s"] = time.monotonic() - began
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    cases = []
    with tempfile.TemporaryDirectory(prefix="antdt-culprits-") as directory:
        job = pathlib.Path(directory) / "job.toml"
        job.write_text(JOB.format(workers=args.workers, batch=16 * args.workers, window=WINDOW_S),
                       encoding="utf-8")
        run = pathlib.Path(directory) / "run"
        antdt("run", job, "--run-dir", run, "--detach")
        try:
            wait_until(lambda: json.loads(antdt("status", run, "--json").stdout)
                       .get("samples_done", 0) > 0, 60)
            while len([c for c in cases if c["outcome"] != "not counted"]) < args.cases:
                kind = rng.choice(args.kinds)
                text, weak, strong = KINDS[kind]
                how = text.format(rng.uniform(weak, strong))
                worker = f"w{rng.randrange(args.workers)}"
                case = {"kind": kind, "worker": worker, "how": how,
                        **play(run, kind, worker, how)}
                cases.append(case)
                print(json.dumps(case), file=sys.stderr, flush=True)
                if len(cases) > 3 * args.cases:
                    break
        finally:
            subprocess.run([ANTDT, "stop", str(run)], capture_output=True, check=False)
    counted = [c for c in cases if c["outcome"] != "not counted"]
    table = collections.defaultdict(collections.Counter)
    for case in counted:
        table[case["kind"]]["cases"] += 1
        table[case["kind"]][case["outcome"]] += 1
        table[case["kind"]]["right cause"] += case["cause"] == case["kind"]
    if args.json:
        print(json.dumps({"not_counted": len(cases) - len(counted), "kinds": table}))
        return
    print(f"{len(counted)} cases, {len(cases) - len(counted)} not counted")
    for kind, row in sorted(table.items()):
        print(f"{kind:10} " + "  ".join(f"{name}: {n}" for name, n in row.items()))


if __name__ == "__main__":
    main()
