"""Shared by the end-to-end tests: runs the real programs on real data, and checks what they leave
behind. Uses only Python's standard library."""

import functools
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("ANTDT_BIN", SOURCE / "build" / "bin"))
ANTDT = str(BIN / "antdt")
ARCHIVES = pathlib.Path(os.environ.get("ANTDT_TEST_DATA", SOURCE.parent / "shared" / "data"))
HAS_TRAINER = (BIN / "antdt-trainer").exists()
BUILT_IN = ("antdt-trainer", "antdt-instrument")  # the programs of workers


def is_built_in(command):
    """Whether this command line is of a worker that came with AntDT."""
    return command.split(" ", 1)[0].rsplit("/", 1)[-1] in BUILT_IN


def await_true(condition, seconds, what):
    """Waits for a condition; the deadline only bounds a failure."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def stat_of(pid):
    """The fields of /proc/PID/stat from the state on; nothing if the process has ended."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []
    return [] if fields[0] in "ZX" else fields


def processes_of(text):
    """(pid, command line) of the processes whose command line or environment holds `text`. Tests
    ask this fifty times a second, of every process there is: files are read as bytes, and what is
    not needed is not read."""
    wanted, own, found = text.encode(), str(os.getpid()), []
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or pid == own:
            continue
        try:
            with open(f"/proc/{pid}/cmdline", "rb", 0) as file:
                command = file.read().replace(b"\0", b" ")
            with open(f"/proc/{pid}/environ", "rb", 0) as file:
                is_it = wanted in command or wanted in file.read()
        except OSError:
            continue
        if is_it and stat_of(pid):
            found.append((int(pid), command.decode(errors="replace")))
    return found


def shared_memory():
    """The shared memory segments that a job's programs may have made, found by the names that their
    libraries use. Segments are files; a directory there belongs to a benchmark or to another
    run."""
    names = re.compile(r"antdt|torch|nccl|gloo|psm_|sem\.mp")
    shm = pathlib.Path("/dev/shm")
    return {p.name for p in shm.iterdir() if names.search(p.name) and p.is_file()} if shm.exists() else set()


class Run:
    """A finished `antdt run`."""

    def __init__(self, process, directory):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr
        self.dir = pathlib.Path(directory)

    @functools.cached_property
    def summary(self):
        return json.loads((self.dir / "summary.json").read_text())

    def explain(self):
        parts = [f"exit code {self.code}", self.out[-3000:], self.err[-3000:]]
        for log in ("jobd.log", "agent.log"):
            path = self.dir / log
            if path.exists():
                parts.append(f"--- {log}\n" + path.read_text(errors="replace")[-3000:])
        for path in sorted((self.dir / "logs").glob("*.err")):
            parts.append(f"--- {path.name}\n" + path.read_text(errors="replace")[-1500:])
        return "\n".join(parts)


class EndToEnd(unittest.TestCase):
    """A test with a directory of its own, which also has its sockets, and a check that nothing of
    the test is left."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="antdt-e2e-"))
        self.runtime = pathlib.Path(tempfile.mkdtemp(prefix="antdt-rt-"))
        self.temporary = self.dir / "tmp"
        self.temporary.mkdir()
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(self.runtime),
                        XDG_CACHE_HOME=str(self.dir / "cache"), TMPDIR=str(self.temporary))
        self.shared_memory = shared_memory()
        self.addCleanup(self.clean_up)
        self.count = 0

    def clean_up(self):
        self.kill_all()
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.runtime, ignore_errors=True)

    def kill_all(self):
        """Kills every process of the test, several times, because processes start one another
        again. A process that is ending has no command line any more, but still holds its files and
        locks."""
        killed = {}  # when it started, by pid: pids are used again

        def none_left():
            found = processes_of(str(self.dir))
            for pid, _ in found:
                killed.setdefault(pid, stat_of(pid)[19:20])
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not found and not any(start and stat_of(pid)[19:20] == start
                                         for pid, start in killed.items())
        await_true(none_left, 30, "everything killed")

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def antdt(self, *args, timeout=300, cwd=None):
        return subprocess.run([ANTDT, *map(str, args)], env=self.env, cwd=cwd or self.dir,
                              capture_output=True, text=True, timeout=timeout)

    def run_job(self, job, *args, timeout=600):
        self.count += 1
        run_dir = self.dir / f"run{self.count}"
        process = self.antdt("run", job, "--run-dir", run_dir, *args, timeout=timeout)
        return Run(process, run_dir)

    def start_job(self, job, *args):
        """`antdt run` in the background: (process, run directory)."""
        self.count += 1
        run_dir = self.dir / f"run{self.count}"
        process = subprocess.Popen(
            [ANTDT, "run", str(job), "--run-dir", str(run_dir), *map(str, args)], env=self.env,
            cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(),
                                 process.communicate()))
        return process, run_dir

    def assert_done(self, run):
        self.assertEqual(run.code, 0, run.explain())
        self.assertEqual(run.summary["state"], "done", run.explain())

    def assert_once(self, run, epochs, records):
        """The audit says once for every record."""
        audit = self.antdt("data", "audit", run.dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        report = json.loads(audit.stdout)
        self.assertEqual(len(report["epochs"]), epochs)
        for epoch in report["epochs"]:
            self.assertEqual(epoch["once"], records, epoch)
            self.assertEqual(epoch["repeated"], 0, epoch)
            self.assertEqual(epoch["lost"], 0, epoch)
        self.assertEqual(run.summary["samples_trained"], epochs * records)

    def assert_nothing_left(self):
        """No process, socket, shared memory or temporary file of this test remains."""
        await_true(lambda: not processes_of(str(self.dir)), 10,
                   f"processes left: {processes_of(str(self.dir))}")
        private = self.runtime / "antdt"  # it has a directory for each job that runs
        await_true(lambda: not private.exists() or not list(private.iterdir()), 10,
                   f"socket directories left: {list(private.rglob('*'))}")
        self.assertEqual([p for p in self.runtime.rglob("*") if p.is_socket()], [])
        self.assertEqual(list(self.temporary.rglob("*")), [])
        self.assertEqual(shared_memory() - self.shared_memory, set())


def needs_trainer(test):
    return unittest.skipUnless(HAS_TRAINER, "built without the trainer")(test)


def unpack(archive, into):
    """Unpacks a data archive; skips the test if there is none."""
    path = ARCHIVES / f"{archive}.tar.xz"
    if not path.exists():
        raise unittest.SkipTest(f"no data: {path} (set ANTDT_TEST_DATA)")
    with tarfile.open(path) as tar:
        tar.extractall(into)
    return pathlib.Path(into) / archive


def gunzip(path):
    out = path.with_suffix("")
    with gzip.open(path) as source, open(out, "wb") as target:
        shutil.copyfileobj(source, target)
    return out
