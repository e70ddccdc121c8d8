"""Runs of earlier releases are resumed by the programs of this build (README.md)."""

import json
import pathlib
import tarfile
import unittest

import shared  # noqa: F401 (finds what follows)
import make
import server_jobs
import tally
from harness import BIN, needs_trainer


@needs_trainer
class KeptRuns(server_jobs.ServersTest):
    def resume(self, archive):
        """The run directory of the finished run, and its summary."""
        run = self.dir / archive.name.removesuffix(".tar.xz")
        with tarfile.open(archive) as packed:
            packed.extractall(run)
        for path in run.rglob("*"):
            if path.suffix in make.TEXTS:
                text = path.read_text().replace("@RUN@/..", str(self.dir)).replace("@RUN@", str(run))
                path.write_text(text.replace("@BIN@", str(BIN)))
        before = json.loads((run / "summary.json").read_text())
        self.assertEqual(before["state"], "stopped")
        self.assertGreater(before["samples_trained"], make.RECORDS)
        done = self.antdt("run", "--resume", run)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return run, json.loads((run / "summary.json").read_text())

    def archives(self, name):
        """Of each release."""
        found = sorted(pathlib.Path(make.HERE).glob(f"run-*-{name}.tar.xz"))
        self.assertTrue(found, f"no run of the kind {name} is kept")
        return found

    def test_each_record_of_an_all_reduce_job_is_in_the_model_once_an_epoch(self):
        for archive in self.archives("allreduce"):
            with self.subTest(archive.name):
                run, summary = self.resume(archive)
                self.assertEqual((summary["state"], summary["failures"]), ("done", []))
                self.assertEqual(set(tally.counts(run)), {float(make.EPOCHS)})
                self.assertEqual(self.antdt("data", "audit", run).returncode, 0)

    def test_each_record_of_a_job_of_parameter_servers_is_in_the_model_once_an_epoch(self):
        for archive in self.archives("servers"):
            with self.subTest(archive.name):
                run, summary = self.resume(archive)
                self.assertEqual((summary["state"], summary["failures"]), ("done", []))
                self.assert_exact_on_servers(summary, run, make.RECORDS, make.EPOCHS)


if __name__ == "__main__":
    unittest.main()
