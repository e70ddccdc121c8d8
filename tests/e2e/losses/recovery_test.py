"""The job daemon dies in the middle of training: it comes back, replays its
journal, and the job ends with every record trained once."""

import json
import os
import signal
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import EndToEnd, await_true, needs_trainer

ROWS = 20000


@needs_trainer
class Recovery(EndToEnd):
    def test_a_killed_job_daemon_comes_back_and_nothing_is_repeated_or_lost(self):
        self.antdt("data", "synth", "criteo", "--rows", ROWS, "--seed", 5, "--out",
                   self.dir / "data")
        # Slow enough that the kills fall into training.
        job = self.write("job.toml", jobs.ctr(
            self.dir / "data" / "train.tsv", self.dir / "data" / "eval.tsv", workers=2, epochs=3,
            extra='[[inject]]\nworkers = ["*"]\ndelay_per_sample = "200us"\n'))
        process, run_dir = self.start_job(job)
        pids = None
        for incarnation in (1, 2, 3):
            status = await_true(lambda: self.progress_of(run_dir, incarnation), 60,
                                f"incarnation {incarnation} trains")
            pids = pids or {w["id"]: w["pid"] for w in status["workers"]}
            os.kill(int((run_dir / "jobd.lock").read_text()), signal.SIGKILL)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["incarnations"], 4)
        self.assertEqual({w["id"]: w["pid"] for w in summary["workers"]}, pids,
                         "no worker was restarted")
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout)
        for epoch in json.loads(audit.stdout)["epochs"]:
            self.assertEqual(epoch["once"], ROWS, epoch)
        self.assert_nothing_left()

    def progress_of(self, run_dir, incarnation):
        """The status once this incarnation has seen samples trained."""
        status = self.antdt("status", run_dir, "--json")
        if status.returncode != 0:
            return None
        found = json.loads(status.stdout)
        trained = found["incarnation"] == incarnation and found["samples_per_second"] > 0
        return found if trained else None


if __name__ == "__main__":
    unittest.main()
