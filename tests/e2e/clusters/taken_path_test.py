"""The run directory of another job on a host of this one. See separate_hosts.py."""

import os
import shutil
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import await_true, needs_trainer
from separate_hosts import INSIDE, SeparateHosts, run_inside

RECORDS = 6000
OTHERS = "s0000009999-l1-g1-w0.1"  # newer than any checkpoint of the test's job


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class TakenPath(SeparateHosts):
    def job(self, *hosts):
        text = tally.job(extra=self.cluster(*hosts), workers=2, records=RECORDS, delay="10ms")
        text = text.replace('command = ["antdt-trainer"]',
                            'command = ["antdt-trainer"]\nresources = { cpus = 1 }')
        return self.write("job.toml", text + '[checkpoint]\nevery = "1s"\n'
                          '[failure]\nhost_lost_after = "3s"\nbudgets = { host = 1000 }\n')

    def leave_checkpoint(self, host, run_dir, job):
        """What another job's run would have left there."""
        checkpoints = host.path(run_dir / "checkpoints")
        shutil.rmtree(checkpoints, ignore_errors=True)
        (checkpoints / OTHERS).mkdir(parents=True)
        (checkpoints / OTHERS / "MANIFEST.json").write_text("{}")
        (checkpoints / ".job").symlink_to(job)
        return checkpoints / OTHERS / "MANIFEST.json"

    def test_a_run_is_not_begun_where_a_host_has_files_of_another_one(self):
        b, c = self.add_host("hostb", cpus=1), self.add_host("hostc", cpus=1)
        job, run_dir = self.job(b, c), self.runs / "run1"
        left = self.leave_checkpoint(c, run_dir, "job-other")
        process, _ = self.launch(job)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2, out + err)
        self.assertIn(f"{run_dir} has files of an earlier run on hosts of this job", err)
        self.assertIn(f"\n  {c.endpoint}: 1 checkpoint and 0 logs", err)
        self.assertIn("choose another --run-dir", err)
        self.assertNotIn(b.endpoint, err)
        self.assertTrue(left.exists())
        self.assertFalse(run_dir.exists())

    def test_a_host_that_comes_back_with_the_files_of_another_run_is_left_until_they_are_gone(self):
        b, c = self.add_host("hostb"), self.add_host("hostc")
        process, run_dir = self.launch(self.job(b, c))
        self.await_training(run_dir)
        c.die()
        left = self.leave_checkpoint(c, run_dir, "job-other")
        c.come_back(self.dir / "keys", 2)

        def said(text):
            return any(text in event for event in self.events(run_dir, "drain"))
        await_true(lambda: said("hostc is drained because ") and said(
            f"{run_dir} on that host is the run directory of another job (job-other)"), 60,
            "hostc is not used")
        await_true(lambda: all(w["host"] == "hostb" for w in self.status(run_dir)["workers"]
                               if w["state"] == "joined"), 60, "all workers are on hostb")
        self.assertTrue(left.exists(), "another job's checkpoint stays")
        shutil.rmtree(left.parents[1])
        await_true(lambda: said("hostc is not drained any more"), 60, "hostc is used again")
        summary = self.finish(process, run_dir, timeout=240)
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_hosts_have_nothing_left(run_dir)


class InNamespacesOfTheirOwn(unittest.TestCase):
    def test_taken_path(self):
        run_inside(self, __file__, "TakenPath")


if __name__ == "__main__":
    unittest.main()
