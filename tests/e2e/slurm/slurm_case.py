"""What the tests under Slurm share: jobs whose model shows which records entered it, the batch script of
the documentation, and a look at every host for what is left. The tests run as root in namespaces of
their own (cluster.py)."""

import itertools
import json
import os
import subprocess
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import cluster
import tally
from harness import ANTDT, HAS_TRAINER, SOURCE, await_true
from separate_hosts import run_unshared

INSIDE = "ANTDT_TEST_SLURM"
PAGE = SOURCE / "docs" / "operations" / "slurm.md"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")


def run_inside(test, file, name, timeout=600):
    """Runs a class of a file's tests in namespaces of its own, for the test outside."""
    if INSIDE in os.environ:
        test.skipTest("is inside already")
    if (reason := cluster.why_not()) is not None:
        test.skipTest(reason)
    if not HAS_TRAINER:
        test.skipTest("built without the trainer")
    run_unshared(test, ["-nmu", "--propagation", "private"], file, name, INSIDE, timeout)


@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class SlurmCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["hostname", "outside"], check=True)
        cls.cluster = cluster.Cluster()
        cls.addClassCleanup(cls.cluster.end)
        cls.nodes = cls.cluster.nodes
        cls.login = cls.cluster.login

    def setUp(self):
        self.begun = time.monotonic()
        self.dir = self.cluster.shared / self._testMethodName[5:45]
        self.dir.mkdir()
        os.chown(self.dir, cluster.UID, cluster.UID)
        self.run_dir = self.dir / "run"
        self.records = 0
        self.addCleanup(self.end_jobs)

    def end_jobs(self):
        self.cluster.slurm("scancel", "--user", cluster.USER)
        self.await_no_jobs()

    def await_no_jobs(self):
        await_true(lambda: not self.cluster.slurm("squeue", "-h"), 30, "no job of Slurm is left")

    # A job whose model counts how often each record entered it, and how it is submitted.

    def job(self, records=6000, workers=3, cpus=2, delay="20ms", extra=""):
        self.records = records
        text = tally.job(workers=workers, records=records, epochs=1, delay=delay, extra=extra)
        path = self.dir / "job.toml"
        path.write_text(text.replace(
            'command = ["antdt-trainer"]',
            f'command = ["antdt-trainer"]\nresources = {{ cpus = {cpus} }}'))
        return path

    def script(self, local_journal=False):
        """The batch script of docs/operations/slurm.md, with the journal where all nodes see it or on
        the node's own disk."""
        page = PAGE.read_text().splitlines()
        lines = [line[4:] for line in itertools.takewhile(lambda x: x[:4].isspace() or not x, page[2:])]
        self.assertEqual((lines[0], lines[-2]), ("#!/bin/bash", 'exit "$status"'))
        if local_journal:
            for word, option in (("--resume", "--from-checkpoint"), ("--run-dir", "--state-dir")):
                other = [line[4:] for line in page if option in line and line.endswith("&")]
                self.assertEqual(len(other), 1, option)
                lines = [other[0] if word in line else line for line in lines]
        path = self.dir / "job.sh"
        path.write_text("\n".join(lines) + "\n")
        return path

    def submit(self, script, *options, nodes=3):
        """Submits a script; its options on the command line count more than those in the script."""
        job = self.cluster.slurm(
            "sbatch", "--parsable", f"--nodes={nodes}", "--cpus-per-task=2", "--chdir", self.dir,
            "--output", self.dir / "out", *options, script).strip()
        self.assertTrue(job.isdigit(), job)
        return job

    def begin(self, *options, local_journal=False, **how):
        """Submits the documented script."""
        job = self.submit(self.script(local_journal), *options, **how)
        self.run_dir = self.dir / "runs" / job
        return job

    def fields(self, job):
        text = self.cluster.slurm("scontrol", "show", "job", job, "--oneliner")
        return dict(w.split("=", 1) for w in text.split() if "=" in w)

    def batch_host(self, job):
        return self.fields(job).get("BatchHost")

    def ended(self, job, seconds=60):
        """The exit status of the batch script of a job that ends."""
        def found():
            known = self.fields(job)
            return known if known.get("JobState") in ENDED else None
        try:
            return int(await_true(found, seconds, "the job of Slurm ends")["ExitCode"].split(":")[0])
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.fields(job)}\n{self.output()}") from error

    def output(self):
        out = self.dir / "out"
        return out.read_text() if out.exists() else "no output"

    def events(self, kind):
        log = self.run_dir / "events.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        return [e["text"] for e in map(json.loads, lines) if e["kind"] == kind]

    def status(self, machine=None):
        """What `antdt status` says on the host of the job daemon."""
        done = self.cluster.run(machine or self.nodes["n1"], ANTDT, "status", self.run_dir, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def await_training(self, machine=None, samples=1, seconds=40):
        def trains():
            status = self.status(machine)
            return status and status["state"] == "training" and status["samples_done"] >= samples
        try:
            await_true(trains, seconds, "training")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.output()}") from error

    def say(self, what):
        """For whoever wants to know where the time goes."""
        print(f"{time.monotonic() - self.begun:.1f} s: {what}", flush=True)

    # What is left.

    def assert_exact(self, machine=None):
        """Each record entered the model once, and the audit says so, on the host that has the
        journal."""
        found = tally.counts(self.run_dir)
        self.assertEqual(len(found), self.records)
        self.assertEqual({i: c for i, c in enumerate(found) if c != 1}, {})
        audit = self.cluster.run(machine or self.login, ANTDT, "data", "audit", self.run_dir,
                                 "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        epoch = json.loads(audit.stdout)["epochs"][0]
        self.assertEqual((epoch["once"], epoch["repeated"], epoch["lost"]), (self.records, 0, 0))

    def files(self, machine):
        """What jobs have on the disk of this host: all temporary files, the runtime directory's, and
        keys anywhere."""
        own = machine.path(self.cluster.own)
        found = [p for d in ("tmp", "run/antdt") for p in sorted((own / d).glob("*"))]
        return [str(p.relative_to(own)) for p in (*found, *own.glob("home/**/*.key"))]

    def assert_nothing_left(self, *but):
        """No process of a job and no file, on the login host and on each node but those."""
        for machine in self.cluster.machines():
            if machine.name not in but:
                self.await_empty(machine.of_jobs, f"processes on {machine.name}")
                self.await_empty(lambda m=machine: self.files(m), f"files on {machine.name}")

    def await_empty(self, look, what, seconds=20):
        try:
            await_true(lambda: not look(), seconds, f"no {what}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {look()}") from error
