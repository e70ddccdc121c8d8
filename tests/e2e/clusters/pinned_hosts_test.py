"""Data that are pinned to domains of hosts that share nothing: no host has a file of another domain, so
that a worker that read one would fail. See separate_hosts.py."""

import json
import os
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import BIN, await_true, needs_trainer
from separate_hosts import INSIDE, SeparateHosts, run_inside

ROWS = {"east": 6_000, "west": 9_000}

JOB = """
[failure]
host_lost_after = "3s"
budgets = { program = 100, signal = 100, host = 100 }
[checkpoint]
every = "1s"
[[inject]]
workers = ["*"]
delay = "20ms"
[[domain]]
name = "east"
hosts = ["east"]
data = ["data/east.tsv"]
[[domain]]
name = "west"
hosts = ["west"]
described = "west.json"
"""


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class PinnedHosts(SeparateHosts):
    def setUp(self):
        super().setUp()
        self.data = self.dir / "data"
        self.data.mkdir()
        for number, (domain, rows) in enumerate(ROWS.items()):
            made = self.antdt("data", "synth", "criteo", "--rows", rows, "--seed", number + 1,
                              "--out", self.dir / domain)
            self.assertEqual(made.returncode, 0, made.stderr)
        (self.dir / "east/train.tsv").rename(self.data / "east.tsv")
        (self.dir / "east/eval.tsv").rename(self.dir / "eval.tsv")

    def hosts_with_their_data(self):
        """The launching host has the data of the east, and each host those of its domain alone."""
        east, west = self.add_host("east", cpus=1), self.add_host("west", cpus=1)
        for host, file in ((east, self.data / "east.tsv"), (west, self.dir / "west/train.tsv")):
            content = file.read_bytes()
            host.own_disk(self.data)
            (host.path(self.data) / f"{host.name}.tsv").write_bytes(content)
        (self.dir / "west/train.tsv").unlink()
        return east, west

    def job(self, east, west, domains=JOB):
        text = jobs.ctr("data/east.tsv", "eval.tsv", workers=2, epochs=2, batch=200, extra=domains)
        text = text.replace('format = "criteo"', 'format = "criteo"\npin = "domain"')
        text = text.replace('command = ["antdt-trainer"]',
                            'command = ["antdt-trainer"]\nresources = { cpus = 1 }')
        return self.write("job.toml", text + self.cluster(east, west))

    def describe(self, host):
        """What a user does on a host of a domain whose files the launching host does not have."""
        self.write("there.toml", jobs.ctr(f"data/{host.name}.tsv", "eval.tsv"))
        done = subprocess.run(
            [*host.enter(), str(BIN / "antdt"), "data", "index", str(self.dir / "there.toml"),
             "--json"], env=host.env, cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.write(f"{host.name}.json", done.stdout)

    def test_no_worker_reads_a_file_of_another_domain(self):
        east, west = self.hosts_with_their_data()
        self.assertFalse((self.data / "west.tsv").exists())
        self.assertFalse((east.path(self.data) / "west.tsv").exists())
        self.assertFalse((west.path(self.data) / "east.tsv").exists())
        self.describe(west)
        process, run_dir = self.launch(self.job(east, west))
        self.await_training(run_dir, 3_000)
        west.die()
        status = self.await_status(
            run_dir, lambda s: "waits for domain west" in s["waiting_for"], 60, "the west waits")
        self.assertIn("no worker is there", status["waiting_for"])
        await_true(lambda: self.events(run_dir, "domain-waits"), 60, "the job says so")
        self.await_status(run_dir, lambda s: "the workers of domain east wait" in s["waiting_for"],
                          60, "the east is done and waits, too")
        self.assertIsNone(process.poll(), "the job is not done without the west")
        self.assertEqual(len(self.events(run_dir, "domain-waits")), 1)
        west.come_back(self.dir / "keys", 1)
        summary = self.finish(process, run_dir)
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        for epoch in json.loads(audit.stdout)["epochs"]:
            self.assertEqual((epoch["once"], epoch["elsewhere"]), (sum(ROWS.values()), 0))
            self.assertEqual({d["name"]: d["trained"] for d in epoch["domains"]}, ROWS)
        self.assertEqual({w["id"]: w["host"] for w in summary["workers"]},
                         {"w0": "east", "w1": "west"})

    def test_other_files_than_those_described_are_refused(self):
        east, west = self.hosts_with_their_data()
        self.describe(west)
        file = west.path(self.data) / "west.tsv"
        file.write_bytes(b"".join(file.read_bytes().splitlines(True)[:-3]))
        process, run_dir = self.launch(self.job(east, west))
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 2, err)
        self.assertIn("west.tsv", err)


class InNamespacesOfTheirOwn(unittest.TestCase):
    def test_pinned_hosts(self):
        run_inside(self, __file__, "PinnedHosts")


if __name__ == "__main__":
    unittest.main()
