"""Runs jobs for the programs in this folder: to their end, or with a watch on their status."""
import argparse
import atexit
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin"))
sys.path.insert(0, str(ROOT / "tests" / "e2e"))  # for modules that read what jobs leave
STOP_SECONDS = 600  # until a job has stopped, with a last checkpoint that may be large
LATE_SECONDS = 60  # the same for one that has taken too long already
REFUSED_SECONDS = 10  # the same for one that does not take the order, because it ends by itself


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values),
            "values": list(values)}


def spread_text(found, form="{:.2f}"):
    return "{} ({} to {})".format(*(form.format(found[k]) for k in ("median", "least", "most")))


class Finished:
    """A job that has ended, with its files."""

    def __init__(self, place, directory):
        self.directory = directory
        self.summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
        self.accounts = place.audit(directory)

    def exact(self, epochs, records):
        """Whether the audit says that each record counted once in each of this many epochs."""
        found = self.accounts["epochs"]
        return len(found) == epochs and all(
            (e["once"], e["repeated"], e["lost"]) == (records, 0, 0) for e in found)

    @property
    def speed(self):
        """Samples per second of training, without the start of the processes."""
        return self.summary["samples_trained"] / self.summary["training_seconds"]

    def forget(self):
        """Removes the run, so that large models do not fill the disk until everything is
        measured."""
        shutil.rmtree(self.directory)


class Running:
    """A job that runs, and its status at several moments."""

    def __init__(self, place, directory, *words):
        self.place, self.directory = place, directory
        with open(f"{directory}.log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([place.program, "run", *map(str, words)],
                                            env=place.env, stdout=log, stderr=subprocess.STDOUT,
                                            start_new_session=True)
        self.seen = []  # (time, samples)
        atexit.register(self._interrupt)  # Ctrl-C reaches this program only

    def status(self):
        """The status, or None while the job does not answer."""
        done = self.place.antdt("status", self.directory, "--json", check=False)
        if done.returncode != 0 or self.process.poll() is not None:
            return None
        status = json.loads(done.stdout)
        if "samples_done" not in status:  # the run is stopped, or has not resumed yet
            return None
        self.seen.append((time.monotonic(), status["samples_done"]))
        return status

    def until(self, condition, seconds, what):
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline:
                if self.process.poll() is not None:
                    raise SystemExit(f"{what}: the job has ended; see {self.directory}.log")
                status = self.status()
                if status and condition(status):
                    return status
                time.sleep(0.02)
            raise SystemExit(f"{what}: not within {seconds} s; see {self.directory}.log")
        except BaseException:
            self._give_up()
            raise

    def watch(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.status()
            time.sleep(0.05)

    def speed(self, since, until):
        """Samples per second between the first and the last status in that time."""
        part = [s for s in self.seen if since <= s[0] <= until]
        if len(part) < 2 or part[-1][0] == part[0][0]:
            return 0.0
        return (part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0])

    def stop(self, seconds=STOP_SECONDS):
        """Stops the job. It is no error if the job has ended already. If it does not end, `antdt run` is
        killed with what it started in its session, and TimeoutExpired raised."""
        try:
            if self.process.poll() is None:
                done = self.place.antdt("stop", self.directory, check=False, seconds=seconds)
                seconds = seconds if done.returncode == 0 else REFUSED_SECONDS
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            # What runs of the job has sessions of its own: its daemon can end it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.place.antdt("stop", self.directory, "--grace", "0s", check=False, seconds=REFUSED_SECONDS)
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise

    def _give_up(self):
        """Stops the job for an error that is about to be raised, which counts."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.stop(LATE_SECONDS)

    def _interrupt(self):
        if self.process.poll() is None:
            self.process.terminate()

    def finished(self, seconds):
        """The job at its end. One that takes longer is stopped, and TimeoutExpired raised; so is one whose
        observer is ended."""
        try:
            code = self.process.wait(seconds)
        except BaseException:
            self._give_up()
            raise
        if code != 0:
            said = pathlib.Path(f"{self.directory}.log").read_text(encoding="utf-8", errors="replace")
            raise SystemExit(f"the job ended with {code}: {said[-1500:].strip()}")
        return Finished(self.place, self.directory)


class Place:
    """A directory of jobs, with sockets and indexes of its own."""

    def __init__(self, directory, binaries=BIN):
        self.directory = pathlib.Path(directory).resolve()
        self.program = str(pathlib.Path(binaries).resolve() / "antdt")
        (self.directory / "rt").mkdir(mode=0o700)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(self.directory / "rt"),
                        XDG_CACHE_HOME=str(self.directory / "cache"))

    def antdt(self, *words, check=True, seconds=None):
        done = subprocess.run([self.program, *map(str, words)], env=self.env, capture_output=True,
                              text=True, check=False, timeout=seconds)
        if check and done.returncode != 0:
            raise SystemExit(f"antdt {' '.join(map(str, words))} ended with {done.returncode}: "
                             f"{done.stderr.strip()}")
        return done

    def audit(self, run):
        """The accounts of a run; those of a stopped job cover what it trained."""
        return json.loads(self.antdt("data", "audit", run, "--json", check=False).stdout)

    def synth(self, rows, seed, seconds=None):
        """Makes clicks in data/, with a quarter as many for evaluation; returns their known
        properties."""
        return json.loads(self.antdt("data", "synth", "criteo", "--rows", rows, "--seed", seed,
                                     "--out", self.directory / "data", "--json", seconds=seconds).stdout)

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
    """The job.toml of two workers by all-reduce on one emulated device class, with a model of this
    many numbers. Only the last checkpoint is kept."""
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
    """Prints `result`, and ends the program with 0 if the result is good, else with 1."""
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        tell(result)
    sys.exit(not result["good"])


def progress(text):
    print(text, file=sys.stderr, flush=True)
