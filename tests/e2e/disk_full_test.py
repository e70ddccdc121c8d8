"""The disk of the journal is full: the job waits, says what it needs, and goes
on by itself when there is room."""

import os
import subprocess
import unittest

import tally
from harness import await_true, needs_trainer

RECORDS = 60000
MIB = 1 << 20


def may_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"],
                                                capture_output=True).returncode == 0


@needs_trainer
@unittest.skipUnless(may_mount(), "mounting a small file system needs root")
class DiskFull(tally.TallyTest):
    def test_a_full_disk_pauses_the_job_until_there_is_room(self):
        small = self.dir / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", small], check=True)
        self.addCleanup(lambda: subprocess.run(["umount", "-l", small]))
        job = self.write("job.toml", tally.job(workers=2, records=RECORDS, delay="10ms"))
        process, run_dir = self.start_job(job, "--state-dir", small)
        self.await_training(run_dir, samples=1000)
        hog = small / "hog"
        with open(hog, "wb") as file:
            try:
                while True:
                    file.write(b"x" * (64 << 10))
                    file.flush()
            except OSError:
                pass
        events = run_dir / "events.jsonl"
        await_true(lambda: '"paused"' in events.read_text(), 60, "the job is paused")
        self.assertIn(str(small), events.read_text())
        self.assertIsNone(process.poll(), "it waits")
        hog.unlink()
        await_true(lambda: '"continued"' in events.read_text(), 30, "the job goes on")
        summary = self.finish(process, run_dir)
        self.assert_exact(summary, run_dir, RECORDS, 2)


if __name__ == "__main__":
    unittest.main()
