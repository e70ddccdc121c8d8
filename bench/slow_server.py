#!/usr/bin/env python3
"""How soon a job is as fast as before when one of its parameter servers becomes slow.

    bench/slow_server.py [--sync ps-asp] [--replicas 1] [--runs 3] [--persistent 10] [--json]

Two agents on 127.0.0.1 are two hosts. Two servers take 3 ms for a request, long beside what
they compute, so that 2 cores tell the truth; four workers wait for them. Then the host of s0
makes it three times slower (`antdt inject`), and AntDT-ND moves it to the other one. Speeds
are of the samples that `antdt status` counts, over two seconds.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin"))
ANTDT = str(BIN / "antdt")
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from hosts import free_port  # noqa: E402

JOB = """
schema = 1
[job]
name = "slow-server"
epochs = 1
seed = 11
[cluster]
hosts = [{hosts}]
keys = "{keys}"
[roles.worker]
count = 4
[roles.server]
count = 2
replicas = {replicas}
[data]
format = "index"
records = 100000000
[batch]
global = 256
[trainer]
model = "tally"
sync = "{sync}"
staleness = 4
[control]
mode = "act"
solution = "{solution}"
transient_window = "2s"
persistent_window = "{persistent}s"
allow = ["kill-restart"]
[checkpoint]
every = "0s"
[[inject]]
workers = ["s0", "s1", "s2", "s3"]
delay = "3ms"
"""
WINDOW_S = 2.0
BEFORE_S = 12.0
ENOUGH = 0.8  # of the speed before
GIVE_UP_S = 60.0  # after the persistent window


class Run:
    """A job on two agents, and what it had done at moments."""

    def __init__(self, directory, args, solution):
        self.directory, self.args = directory, args
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(directory / "rt"))
        (directory / "rt").mkdir(mode=0o700)
        subprocess.run([ANTDT, "keygen", "--dir", str(directory / "keys")], check=True,
                       stdout=subprocess.DEVNULL, env=self.env)
        self.agents, hosts = [], []
        for name in ("hosta", "hostb"):
            port = free_port()
            hosts.append(f'"127.0.0.1:{port}"')
            log = open(directory / f"{name}.log", "w", encoding="utf-8")
            self.agents.append(subprocess.Popen(
                [str(BIN / "antdtd"), "--listen", f"127.0.0.1:{port}", "--keys",
                 str(directory / "keys"), "--state-dir", str(directory / f"{name}-state"),
                 "--host-name", name, "--socket-dir", str(directory / "rt" / name), "--address",
                 "127.0.0.1", "--allow-root"], stdout=log, stderr=subprocess.STDOUT, env=self.env))
        job = directory / "job.toml"
        job.write_text(JOB.format(hosts=", ".join(hosts), keys=directory / "keys",
                                  replicas=args.replicas, sync=args.sync, solution=solution,
                                  persistent=args.persistent), encoding="utf-8")
        self.run_dir = directory / "run"
        self.job = subprocess.Popen([ANTDT, "run", str(job), "--run-dir", str(self.run_dir)],
                                    stdout=open(directory / "run.log", "w", encoding="utf-8"),
                                    stderr=subprocess.STDOUT, env=self.env)
        self.seen = []  # (time, samples)

    def status(self):
        done = subprocess.run([ANTDT, "status", str(self.run_dir), "--json"], env=self.env,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0 or self.job.poll() is not None:
            return None
        status = json.loads(done.stdout)
        self.seen.append((time.monotonic(), status["samples_done"]))
        return status

    def await_training(self):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            status = self.status()
            if status and status["samples_done"] > 0:
                return status
            time.sleep(0.1)
        raise SystemExit(f"the job does not train; see {self.directory}/run.log")

    def watch(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.status()
            time.sleep(0.2)

    def speed(self, since, until):
        part = [s for s in self.seen if since <= s[0] <= until]
        if len(part) < 2:
            return 0.0
        return (part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0])

    def inject(self, host):
        subprocess.run([ANTDT, "inject", str(self.run_dir), 'workers=["s0"]', f'host="{host}"',
                        "slowdown=3"], check=True, stdout=subprocess.DEVNULL, env=self.env)
        return time.monotonic()

    def end(self):
        subprocess.run([ANTDT, "stop", str(self.run_dir)], env=self.env, check=False,
                       stdout=subprocess.DEVNULL)
        self.job.wait(60)
        for agent in self.agents:
            agent.terminate()
            agent.wait(10)


def measure(args, solution):
    with tempfile.TemporaryDirectory(prefix="antdt-slow-server-") as name:
        run = Run(pathlib.Path(name), args, solution)
        try:
            host = next(s["host"] for s in run.await_training()["servers"] if s["id"] == "s0")
            run.watch(3)  # caches, connections
            began = time.monotonic()
            run.watch(BEFORE_S)
            before = run.speed(began, time.monotonic())
            injected = run.inject(host)
            run.watch(args.persistent + (GIVE_UP_S if solution != "none" else 2 * WINDOW_S))
            times = [t for t, _ in run.seen if t >= injected + WINDOW_S]
            shares = [(t - injected, run.speed(t - WINDOW_S, t) / before) for t in times]
            slow = statistics.median(s for t, s in shares if t < args.persistent)
            # From when on it stays so, but for moments.
            back = next((t for i, (t, s) in enumerate(shares) if s >= ENOUGH and
                         statistics.median(x for _, x in shares[i:i + 25]) >= ENOUGH), None)
            after = [s for t, s in shares if back is not None and t >= back]
            actions = [a for a in (run.status() or {}).get("actions", [])
                       if a["outcome"] == "applied"]
            return {"before": before, "slow": slow, "back_s": back,
                    "after": statistics.median(after) if after else None,
                    "actions": [f"{a['kind']} {a['target']}" for a in actions]}
        finally:
            run.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sync", default="ps-asp", choices=["ps-bsp", "ps-ssp", "ps-asp"])
    parser.add_argument("--replicas", type=int, default=1, choices=[1, 2])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--persistent", type=int, default=10, help="window in seconds")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    runs = [measure(args, "nd") for _ in range(args.runs)]
    if args.json:
        print(json.dumps(runs))
        return
    for run in runs:
        back = "never" if run["back_s"] is None else f"after {run['back_s']:.1f} s"
        after = "" if run["after"] is None else f", then {run['after']:.2f}"
        print(f"{run['before']:,.0f} samples/s; slow {run['slow']:.2f} of it; {ENOUGH:.1f} again "
              f"{back}{after} ({', '.join(run['actions'])})")


if __name__ == "__main__":
    main()
