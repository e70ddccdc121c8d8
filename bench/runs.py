"""Jobs as the programs here run them: whole ones, and ones that are watched meanwhile."""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin"))
sys.path.insert(0, str(ROOT / "tests" / "e2e"))  # for modules that read what jobs leave


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values),
            "values": list(values)}


def spread_text(found, form="{:.2f}"):
    return "{} ({} to {})".format(*(form.format(found[k]) for k in ("median", "least", "most")))


class Finished:
    """A job that has ended, and what was written of it."""

    def __init__(self, place, directory):
        self.directory = directory
        self.summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
        self.accounts = place.audit(directory)

    def exact(self, epochs, records):
        """Whether each record counted once in each of so many epochs, by the audit."""
        found = self.accounts["epochs"]
        return len(found) == epochs and all(
            (e["once"], e["repeated"], e["lost"]) == (records, 0, 0) for e in found)

    @property
    def speed(self):
        """Samples a second of training: the start of the processes does not count."""
        return self.summary["samples_trained"] / self.summary["training_seconds"]

    def forget(self):
        """A large model need not stay until all is measured."""
        shutil.rmtree(self.directory)


class Running:
    """A job that runs, and what its status said at moments."""

    def __init__(self, place, directory, *words):
        self.place, self.directory = place, directory
        with open(f"{directory}.log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([place.program, "run", *map(str, words)],
                                            env=place.env, stdout=log, stderr=subprocess.STDOUT)
        self.seen = []  # (time, samples)

    def status(self):
        """None while it does not answer."""
        done = self.place.antdt("status", self.directory, "--json", check=False)
        if done.returncode != 0 or self.process.poll() is not None:
            return None
        status = json.loads(done.stdout)
        if "samples_done" not in status:  # of a run that is stopped, or not there again yet
            return None
        self.seen.append((time.monotonic(), status["samples_done"]))
        return status

    def until(self, condition, seconds, what):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise SystemExit(f"{what}: the job has ended; see {self.directory}.log")
            status = self.status()
            if status and condition(status):
                return status
            time.sleep(0.02)
        raise SystemExit(f"{what}: not within {seconds} s; see {self.directory}.log")

    def watch(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.status()
            time.sleep(0.05)

    def speed(self, since, until):
        """Samples a second between the first and the last look in that time."""
        part = [s for s in self.seen if since <= s[0] <= until]
        if len(part) < 2 or part[-1][0] == part[0][0]:
            return 0.0
        return (part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0])

    def stop(self):
        """Stops the job, to be resumed or not. It is no error if it has ended already."""
        if self.process.poll() is None:
            self.place.antdt("stop", self.directory, check=False)
        return self.process.wait(120)

    def finished(self, seconds):
        code = self.process.wait(seconds)
        if code != 0:
            raise SystemExit(f"the job ended with {code}; see {self.directory}.log")
        return Finished(self.place, self.directory)


class Place:
    """A directory of jobs, with sockets and indexes of its own."""

    def __init__(self, directory, binaries=BIN):
        self.directory = pathlib.Path(directory).resolve()
        self.program = str(pathlib.Path(binaries).resolve() / "antdt")
        (self.directory / "rt").mkdir(mode=0o700)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(self.directory / "rt"),
                        XDG_CACHE_HOME=str(self.directory / "cache"))

    def antdt(self, *words, check=True):
        done = subprocess.run([self.program, *map(str, words)], env=self.env, capture_output=True,
                              text=True, check=False)
        if check and done.returncode != 0:
            raise SystemExit(f"antdt {' '.join(map(str, words))} ended with {done.returncode}: "
                             f"{done.stderr.strip()}")
        return done

    def audit(self, run):
        """Of a job that was stopped as well, whose accounts are of what it trained."""
        return json.loads(self.antdt("data", "audit", run, "--json", check=False).stdout)

    def synth(self, rows, seed):
        """Made clicks in data/, a quarter as many to evaluate on; what is known of them."""
        return json.loads(self.antdt("data", "synth", "criteo", "--rows", rows, "--seed", seed,
                                     "--out", self.directory / "data", "--json").stdout)

    def write(self, name, text):
        job = self.directory / f"{name}.toml"
        job.write_text(text, encoding="utf-8")
        return job

    def run(self, name, text):
        self.antdt("run", self.write(name, text), "--run-dir", self.directory / name)
        return Finished(self, self.directory / name)

    def start(self, name, text):
        run = self.directory / name
        return Running(self, run, self.write(name, text), "--run-dir", run)

    def resume(self, run):
        return Running(self, run, "--resume", run)


def emulated_job(name, command, records, parameters, every, flat, extra=""):
    """job.toml of two workers around a ring, on one emulated device for all, whose model is so many
    numbers: only the last checkpoint is kept."""
    return f"""
schema = 1
[job]
name = "{name}"
seed = 5
[roles.worker]
count = 2
command = {json.dumps(command)}
resources = {{ cpus = 1 }}
[data]
format = "index"
records = {records}
[batch]
global = 32
[checkpoint]
every = "{every}"
keep = 1
[trainer]
model = "emulated"
[emulated]
parameters = {parameters}
[[emulated.device]]
class = "any"
flat = "{flat}"
per_sample = "10us"
{extra}
"""


def options(doc, runs):
    """The options of every program here; `runs`: the default number of runs."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=BIN, help="where antdt is")
    parser.add_argument("--runs", type=int, default=runs, help=f"how often ({runs})")
    parser.add_argument("--json", action="store_true")
    return parser


def in_place(args, measure):
    """The result of `measure(args, place)`, in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="antdt-bench-", ignore_cleanup_errors=True) as name:
        return measure(args, Place(name, args.bin))


def finish(args, result, tell):
    """Prints `result` and ends the program by what it says of itself."""
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        tell(result)
    sys.exit(not result["good"])


def progress(text):
    print(text, file=sys.stderr, flush=True)
