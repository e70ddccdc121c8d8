#!/usr/bin/env python3
"""Compares what `antdt replay` and `antdt simulate` predict with real runs.

    ANTDT_BIN=build/bin bench/predictions/what_if_vs_real.py --out DIR [--only NAME]... [--within 0.10] [--json]

Each recording is a real run under `none`. From it alone the other variants are predicted: another
solution, a backup worker, a host fewer. Then each is run really. Emulated devices take real time and
compute nothing, so a small machine is enough for them. The jobs with real data train DeepFM with 2
workers: in `real-data`, `rows-on-servers` (hybrid) and `domains` (gaia) a sample is delayed by 0.2 ms, of which most of its
time consists, so that they bear some load of the machine; `real-devices` has no delay, needs two processors that nobody else uses, and
only runs if it is named. The goal is that each predicted time of training is within 10 % of the measured
one; the exit code is 1 if one is not.
"""
import argparse
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin")).resolve()

EMULATED = """
schema = 1
[job]
name = "{name}"
seed = 5
[roles.worker]
count = {workers}
{places}
[data]
format = "index"
records = {records}
[batch]
global = {batch}
adjust = "{adjust}"
[control]
solution = "none"
transient_window = "1s"
persistent_window = "5s"
[trainer]
model = "emulated"
sync = "{sync}"
[checkpoint]
every = "0s"
[emulated]
noise = 0.02
parameters = 1000
{devices}
{inject}
"""
ONE_CLASS = """
[[emulated.device]]
class = "d"
flat = "4ms"
flat_until = 4
per_sample = "500us"
memory = 256
"""
TWO_CLASSES = """
[[emulated.device]]
class = "fast"
workers = ["w0", "w1"]
flat = "4ms"
flat_until = 8
per_sample = "250us"
memory = 256
[[emulated.device]]
class = "slow"
flat = "4ms"
flat_until = 8
per_sample = "625us"
memory = 256
"""
SLOW_WORKER = '[[inject]]\nworkers = ["w3"]\nslowdown = 3.0\n'
SLOW_HOST = '[[inject]]\nhost = "b"\nslowdown = 3.0\n'
DELAY = '[[inject]]\nworkers = ["*"]\ndelay_per_sample = "200us"\n'
SERVERS = "[roles.server]\ncount = 2\n"
# Of the first two workers; a message takes 20 ms from one to the other.
DOMAINS = """
[[domain]]
name = "east"
workers = ["w0"]
[[domain]]
name = "west"
workers = ["w1"]
[[inject]]
domain = "east"
to_domain = "west"
both_ways = true
latency = "20ms"
"""
REAL_DATA = """
schema = 1
[job]
name = "real-data"
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
[control]
solution = "none"
transient_window = "2s"
persistent_window = "10s"
[trainer]
model = "deepfm"
optimizer = "adam"
lr = 1e-3
threads = 1
[checkpoint]
every = "0s"
{inject}
[[inject]]
workers = ["w1"]
slowdown = 3.0
"""


def antdt(*words, check=True):
    done = subprocess.run([BIN / "antdt", *map(str, words)], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise SystemExit(f"antdt {' '.join(map(str, words))}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def emulated(name, **changes):
    values = {"name": name, "workers": 4, "places": "", "records": 51200, "batch": 256, "adjust": "both",
              "sync": "allreduce", "devices": ONE_CLASS, "inject": ""} | changes
    return EMULATED.format(**values)


class Agents:
    """Two agents on 127.0.0.1, which are two hosts for a job."""

    def __init__(self, directory):
        self.keys = directory / "keys"
        self.processes = []
        self.addresses = {}
        antdt("keygen", "--dir", self.keys)
        for name in ("a", "b"):
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                port = s.getsockname()[1]
            # A socket's path is short.
            sockets = tempfile.mkdtemp(prefix="antdt-wi-")
            self.processes.append(subprocess.Popen(
                [BIN / "antdtd", "--listen", f"127.0.0.1:{port}", "--keys", self.keys, "--state-dir",
                 directory / f"{name}-state", "--host-name", name, "--socket-dir", sockets, "--address",
                 "127.0.0.1", "--allow-root"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self.addresses[name] = f"127.0.0.1:{port}"
            self.await_port(port)

    @staticmethod
    def await_port(port):
        deadline = time.monotonic() + 20
        while True:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    return
            if time.monotonic() > deadline:
                raise SystemExit("an agent does not listen")
            time.sleep(0.05)

    def cluster(self, *names):
        hosts = ", ".join(f'"{self.addresses[n]}"' for n in names)
        return f'[cluster]\nhosts = [{hosts}]\nkeys = "{self.keys}"\n'

    def end(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


class Case:
    """A recording, and its variants: (what is predicted, a real job, settings of that). `changed`: settings
    for `antdt simulate --from`."""

    def __init__(self, name, recording, variants, changed=(), on_the_fly=False):
        self.name = name
        self.recording = recording
        self.variants = variants
        self.changed = changed
        self.on_the_fly = on_the_fly


def cases(directory, wanted):
    straggler = emulated("straggler", inject=SLOW_WORKER)
    classes = emulated("two-classes", devices=TWO_CLASSES, records=102400)
    servers = emulated("servers", places=SERVERS, sync="ps-bsp", adjust="size", inject=SLOW_WORKER)
    asp = emulated("servers-asp", places=SERVERS, sync="ps-asp", adjust="size", inject=SLOW_WORKER,
                   records=102400)
    same = [("none", None, ())]

    def other(solution, job):
        return (solution, job, (f"control.solution={solution}",))
    yield Case("straggler", straggler, [*same, other("nd", straggler)], changed=[["batch.global=512"]])
    yield Case("two-classes", classes, [*same, other("dd", classes)])
    yield Case("servers", servers, [*same, other("nd", servers), other("backup-workers", servers)],
               changed=[["trainer.sync=ps-ssp", "trainer.staleness=2"]])
    yield Case("servers-asp", asp, same)
    if "a-host-fewer" in wanted:
        agents = Agents(directory)
        try:
            both = emulated("two-hosts", places=agents.cluster("a", "b"), inject=SLOW_HOST)
            one = emulated("one-host", places=agents.cluster("a"), workers=2)
            yield Case("a-host-fewer", both, [*same, ("none without host b", one, ())])
        finally:
            agents.end()
    if set(REAL) & set(wanted):
        data = directory / "data"
        if not data.exists():
            antdt("data", "synth", "criteo", "--rows", 100000, "--seed", 7, "--out", data)
        delayed = REAL_DATA.format(workers=2, data=data, epochs=1, batch=256, inject=DELAY)
        yield Case("real-data", delayed, [*same, other("nd", delayed)], on_the_fly=True)
        hybrid = delayed.replace('model = "deepfm"', 'model = "deepfm"\nsync = "hybrid"') + SERVERS
        yield Case("rows-on-servers", hybrid, [*same, other("nd", hybrid)])
        gaia = delayed.replace('model = "deepfm"\noptimizer = "adam"',
                               'model = "deepfm"\nsync = "gaia"\noptimizer = "sgd"') + DOMAINS
        yield Case("domains", gaia, [*same, other("nd", gaia)])
        bare = REAL_DATA.format(workers=2, data=data, epochs=12, batch=1024, inject="")
        yield Case("real-devices", bare, [*same, other("nd", bare)], on_the_fly=True)


USUAL = ["straggler", "two-classes", "servers", "servers-asp", "a-host-fewer", "real-data", "rows-on-servers",
         "domains"]
REAL = ["real-data", "rows-on-servers", "domains", "real-devices"]
NAMES = [*USUAL, "real-devices"]


def run(directory, name, job, settings=()):
    """Seconds in training phases of a real run, by its summary, and its directory."""
    path = directory / f"{name}.toml"
    path.write_text(job, encoding="utf-8")
    run_dir = directory / name
    antdt("run", path, "--run-dir", run_dir, "--json", *[w for s in settings for w in ("--set", s)])
    summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    return summary["training_seconds"], run_dir


def predictions(run_dir):
    """Seconds by name, of all alternatives of a recording."""
    found = {}
    for a in json.loads(antdt("replay", run_dir, "--json").stdout)["what_if"]:
        name = a["solution"]
        if a["without_host"]:
            name += f" without host {a['without_host']}"
        elif a["without"]:
            name += f" without {', '.join(a['without'])}"
        found[name] = a["job_seconds"]
    return found


def check(directory, case):
    recorded_s, run_dir = run(directory, case.name, case.recording)
    predicted = predictions(run_dir)
    for i, (name, job, settings) in enumerate(case.variants):
        real_s = recorded_s
        if job is not None:
            real_s, _ = run(directory, f"{case.name}-{i}", job, settings)
        yield name, predicted[name], real_s
    for settings in case.changed:
        changes = [w for s in settings for w in ("--set", s)]
        out = antdt("simulate", "--from", run_dir, "--json", *changes).stdout
        real_s, _ = run(directory, f"{case.name}-{settings[0]}", case.recording, settings)
        yield " ".join(settings), json.loads(out)[0]["job_seconds"], real_s
    if case.on_the_fly:
        out = antdt("simulate", directory / f"{case.name}.toml", "--json", "--solution", "none").stdout
        yield "none, measured on the fly", json.loads(out)[0]["job_seconds"], recorded_s


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=NAMES)
    parser.add_argument("--within", type=float, default=0.10)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    directory = args.out.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    wanted = args.only or USUAL
    pairs = []
    for case in cases(directory, wanted):
        if case.name not in wanted:
            continue
        for name, predicted_s, real_s in check(directory, case):
            pair = {"recording": case.name, "variant": name, "predicted_seconds": predicted_s,
                    "real_seconds": real_s, "off": predicted_s / real_s - 1}
            pairs.append(pair)
            if not args.json:
                print("{recording:14} {variant:40} predicted {predicted_seconds:7.2f} s  real "
                      "{real_seconds:7.2f} s  {off:+.1%}".format(**pair), flush=True)
    if args.json:
        print(json.dumps(pairs, indent=2))
    sys.exit(any(abs(pair["off"]) > args.within for pair in pairs))


if __name__ == "__main__":
    main()
