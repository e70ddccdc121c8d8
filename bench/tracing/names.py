#!/usr/bin/env python3
"""Which rank the tracer names in training scripts that know nothing of AntDT: plain
DistributedDataParallel, accelerate and Lightning on processors (bench/tracing/programs). Each run is a job of
its own.

    bench/tracing/names.py slow [--runs 20] [--frameworks ddp,accelerate,lightning] [--ranks 3] [--seed 1]
                              [--python VENV/bin/python] [--set KEY=VALUE] [--keep DIR] [--json]
    bench/tracing/names.py skip [--runs 10] ...

slow: after some quiet seconds one rank, chosen by the seed, is made 1.5 to 4 times as slow by `antdt inject`.
      Counted are runs in which it was named within a window and 5 s, how long that took, and *victims*: ranks named
      that were not slowed, at any moment from the first step to the end, in `antdt status --json` (looked at five
      times a second) or in the events of the run.
skip: a rank, chosen by the seed, leaves out one collective of the script's own; the job has hang_after = 8 s. Counted
      are runs in which exactly this rank is the culprit, and in which its stack, and that of each other rank, goes
      through the script.

The exit code is 0 if each run named the right rank and no other.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ANTDT = str(pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin")).resolve() / "antdt")
SCRIPTS = {"ddp": "ddp.py", "accelerate": "accelerate_loop.py", "lightning": "lightning_fit.py"}
QUIET_S = (4, 8)      # before the rank is slowed
AFTER_S = 4           # after it was named
STRENGTH = (1.5, 4.0)
START_S = 180


class Job:
    """One job, and which rank was named in it when."""

    def __init__(self, options, directory, framework, *flags, settings=()):
        self.run_dir = directory / "run"
        self.directory = directory
        words = [ANTDT, "torchrun", "--nproc-per-node", str(options.ranks), "--run-dir", self.run_dir]
        for setting in (*settings, *options.set):
            words += ["--set", setting]
        self.env = dict(os.environ, PYTHON_EXEC=options.python, XDG_CACHE_HOME=str(directory / "cache"),
                        XDG_RUNTIME_DIR=str(directory / "rt"))
        (directory / "rt").mkdir(mode=0o700)
        self.log = directory / "antdt.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*words, ROOT / "bench" / "tracing" / "programs" / SCRIPTS[framework], *map(str, flags)], env=self.env,
                cwd=directory, stdout=log, stderr=subprocess.STDOUT)
        self.named = {}  # worker -> (when first, its verdict)
        self.status = {}

    def antdt(self, *words):
        return subprocess.run([ANTDT, *map(str, words)], env=self.env, capture_output=True, text=True,
                              check=False)

    def look(self):
        """Whether the job goes on."""
        if self.process.poll() is not None:
            return False
        done = self.antdt("status", self.run_dir, "--json")
        if done.returncode != 0 or not done.stdout:
            return True
        self.status = json.loads(done.stdout)
        for worker in self.status.get("workers", []):
            if worker.get("straggler"):
                self.named.setdefault(worker["id"], (time.monotonic(), worker["straggler"]))
        return True

    def until(self, condition, seconds):
        """Reads the status until `condition` holds; returns whether it did."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.look():
                return False
            if condition():
                return True
            time.sleep(0.2)
        return False

    def steps(self):
        return self.status.get("step", 0)

    def end(self, seconds=60):
        if self.process.poll() is None:
            self.antdt("stop", self.run_dir)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def events(self, kind):
        path = self.run_dir / "events.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event.get("kind") == kind]


def slow(options, directory, framework, chance):
    """The result of one run."""
    rank = chance.randrange(options.ranks)
    strength = chance.uniform(*STRENGTH)
    quiet = chance.uniform(*QUIET_S)
    job = Job(options, directory, framework, "--step-ms", options.step_ms, settings=options.windows)
    try:
        if not job.until(lambda: job.steps() >= 1, START_S):
            return {"error": "it made no step; see " + str(job.log)}
        job.until(lambda: False, quiet)
        who = next(w["id"] for w in job.status["workers"] if w["rank"] == rank)
        began = time.monotonic()
        done = job.antdt("inject", job.run_dir, f'workers=["{who}"]', f"slowdown={strength:.2f}")
        if done.returncode != 0:
            return {"error": done.stderr.strip()}
        job.until(lambda: who in job.named, options.window + 5)
        job.until(lambda: False, AFTER_S)
    finally:
        job.end()
    events = [e["text"] for e in job.events("verdict") if " straggler" in e["text"]]
    victims = sorted({w for w in job.named if w != who} |
                     {text.split()[0] for text in events if text.split()[0] != who})
    result = {"rank": rank, "slowdown": round(strength, 2), "quiet_s": round(quiet, 1), "named": who in job.named,
              "victims": victims, "events": events}
    if who in job.named:
        when, verdict = job.named[who]
        result |= {"after_s": round(when - began, 2), "early": when < began, "cause": verdict["cause"],
                   "severity": round(verdict["severity"], 2)}
        result["named"] = not result["early"]
    result["of_victims"] = {w: job.named[w][1] | {"at_s": round(job.named[w][0] - began, 2)}
                            for w in victims if w in job.named}
    result["good"] = result["named"] and not victims
    return result


def skip(options, directory, framework, chance):
    rank = chance.randrange(options.ranks)
    at = chance.randrange(21, 60)
    at += at % 10 == 0  # where the script has no collective anyway, but for this
    job = Job(options, directory, framework, "--step-ms", options.step_ms, "--skip-rank", rank, "--skip-at", at,
              settings=('failure.hang_after="8s"',))
    began = time.monotonic()
    try:
        if not job.until(lambda: job.steps() >= at - 1 or job.status.get("hang"), START_S):
            return {"error": "it never came to the step; see " + str(job.log)}
        stopped = time.monotonic()
        job.until(lambda: job.status.get("hang"), 30)
        found_s = time.monotonic() - stopped
        job.process.wait(60)
    except subprocess.TimeoutExpired:
        return {"error": "the job did not end by the hang; see " + str(job.log)}
    finally:
        job.end()
    summary = json.loads((job.run_dir / "summary.json").read_text(encoding="utf-8"))
    hang = summary.get("hang") or {}
    who = f"w{rank}"
    name = SCRIPTS[framework]
    stacks = {s["worker"]: s["stack"] for s in hang.get("stacks", [])}
    result = {"rank": rank, "at": at, "culprits": hang.get("culprits"), "text": hang.get("text"),
              "found_s": round(found_s, 1), "job_s": round(time.monotonic() - began, 1),
              "reason": summary["exit"].get("first_cause", ""),
              "stack": name in stacks.get(who, ""), "stacks": sum(name in s for s in stacks.values())}
    result["good"] = (hang.get("culprits") == [who] and result["stack"] and result["stacks"] == options.ranks)
    return result


def tell(results):
    for framework, runs in results.items():
        good = sum(r.get("good", False) for r in runs)
        times = sorted(r["after_s"] for r in runs if "after_s" in r) or [r["found_s"] for r in runs if "found_s" in r]
        victims = sum(bool(r.get("victims")) for r in runs)
        line = f"{framework}: {good} of {len(runs)} named as they should be"
        if times:
            line += f", after {statistics.median(times):.1f} s in the middle, {max(times):.1f} s at most"
        if any("victims" in r for r in runs):
            line += f"; victims in {victims} runs, nobody in {sum(not r.get('named') for r in runs)}"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("slow", "skip"))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--frameworks", default="ddp,accelerate,lightning")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--step-ms", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--window", type=float, help="control.transient_window in seconds (10)")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has the packages")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of job.toml")
    parser.add_argument("--keep", type=pathlib.Path, help="where the runs stay")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.windows = [f'control.transient_window="{options.window:g}s"'] if options.window else []
    options.window = options.window or 10.0
    runs = options.runs or (20 if options.what == "slow" else 10)
    play = slow if options.what == "slow" else skip
    results = {}
    with tempfile.TemporaryDirectory(prefix="antdt-bench-", ignore_cleanup_errors=True) as temporary:
        place = options.keep or pathlib.Path(temporary)
        for framework in options.frameworks.split(","):
            chance = random.Random(f"{options.seed} {options.what} {framework}")
            results[framework] = []
            for number in range(runs):
                directory = place / f"{framework}-{number}"
                directory.mkdir(parents=True)
                found = play(options, directory, framework, chance)
                results[framework].append(found)
                print(framework, number, json.dumps(found), file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        tell(results)
    sys.exit(not all(r.get("good") for of in results.values() for r in of))


if __name__ == "__main__":
    main()
