"""A disk is full. The job says how much space it needs and where, waits or goes on without
checkpoints, and writes them again once there is room."""

import json
import os
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
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
    def mount(self, where, size):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", where], check=True)
        self.addCleanup(lambda: subprocess.run(["umount", "-l", where], capture_output=True))

    @staticmethod
    def fill(where):
        """The file that fills the disk."""
        hog = where / "hog"
        for size in (64 << 10, 4 << 10):
            with open(hog, "ab", buffering=0) as file:
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass
        return hog

    @staticmethod
    def events(run_dir, kind):
        lines = (run_dir / "events.jsonl").read_text().splitlines()
        return [e["text"] for e in map(json.loads, lines) if e["kind"] == kind]

    def test_a_full_disk_pauses_the_job_until_there_is_room(self):
        small = self.dir / "small"
        small.mkdir()
        self.mount(small, "24m")
        job = self.write("job.toml", tally.job(workers=2, records=RECORDS, delay="10ms"))
        process, run_dir = self.start_job(job, "--state-dir", small)
        self.await_training(run_dir, samples=1000)
        hog = self.fill(small)
        await_true(lambda: self.events(run_dir, "paused"), 60, "the job is paused")
        self.assertIn(str(small), self.events(run_dir, "paused")[0])
        self.assertIsNone(process.poll(), "it waits")
        self.assert_all_say_that_it_is_paused(run_dir, small)
        hog.unlink()
        await_true(lambda: self.events(run_dir, "continued"), 30, "the job goes on")
        self.await_status(run_dir, lambda s: not s["paused"], 30, "nothing else is said")
        summary = self.finish(process, run_dir)
        self.assert_exact(summary, run_dir, RECORDS, 2)

    def assert_all_say_that_it_is_paused(self, run_dir, small):
        full = f"paused: the disk of the journal is full: make room for 8 MiB in {small}"
        status = self.status(run_dir)
        self.assertTrue(status["paused"])
        self.assertIn("the disk of the journal is full", status["disk_trouble"])
        self.assertEqual(status["samples_per_second"], 0)
        self.assertNotIn("eta_seconds", status)
        said = self.antdt("status", run_dir).stdout
        self.assertTrue(said.startswith(full), said)
        self.assertIn("paused", self.antdt("jobs").stdout)
        self.assertIn(full, self.antdt("jobs").stdout)
        self.assertIn(f"The job is {full}", self.antdt("explain", run_dir).stdout)

    def begin_with_small_checkpoints(self, records):
        """A job that trains, and a file system of its checkpoints alone."""
        job = self.write("job.toml", tally.job(workers=2, records=records, delay="10ms",
                                               extra='[checkpoint]\nevery = "1s"\nkeep = 2\n'))
        process, run_dir = self.start_job(job)
        kept = run_dir / "checkpoints"
        await_true(kept.exists, 30, "a run directory")
        self.mount(kept, "8m")
        await_true(lambda: list(kept.glob("s*")), 60, "a checkpoint")
        return process, run_dir, kept

    @staticmethod
    def content(kept):
        """Every complete checkpoint with the content of its files."""
        return {c.name: {f.name: f.read_bytes() for f in c.iterdir()} for c in kept.glob("s*")}

    def take_all_room(self, run_dir, kept):
        """The checkpoints that exist once no further one finds room, and the file that fills the
        disk."""
        def none_left():
            # Again, because a checkpoint that was given up has freed its space.
            hog = self.fill(kept)
            before, said = self.content(kept), len(self.events(run_dir, "checkpoint-failed"))
            await_true(lambda: len(self.events(run_dir, "checkpoint-failed")) > said, 30,
                       "it is said that a checkpoint found no room")
            full = os.statvfs(kept).f_bfree == 0 and self.content(kept) == before
            return (before, hog) if full else None
        return await_true(none_left, 60, "there is no room for a checkpoint")

    def test_without_room_for_checkpoints_training_goes_on_and_the_old_ones_stay(self):
        process, run_dir, kept = self.begin_with_small_checkpoints(RECORDS)
        before, hog = self.take_all_room(run_dir, kept)
        told = self.events(run_dir, "checkpoint-failed")[-1]
        self.assertIn("No space left on device", told)
        self.assertRegex(told, rf"{kept} has 0\.\d MiB free, the newest checkpoint takes 0\.\d MiB")
        trained = self.status(run_dir)["samples_done"]
        self.await_training(run_dir, samples=trained + 5000)
        self.assertEqual(self.content(kept), before)
        self.assertEqual(list(kept.glob(".tmp*")), [])
        hog.unlink()
        await_true(lambda: set(self.content(kept)) - set(before), 30, "the next checkpoint")
        summary = self.finish(process, run_dir)
        self.assert_exact(summary, run_dir, RECORDS, 2)
        subprocess.run(["umount", "-l", kept], check=True)
        self.assert_nothing_left()

    def test_without_room_for_the_model_the_job_waits_at_its_end(self):
        records = 20000
        process, run_dir, kept = self.begin_with_small_checkpoints(records)
        _, hog = self.take_all_room(run_dir, kept)
        self.await_status(run_dir, lambda s: s["state"] == "finishing", 120, "all is trained")
        await_true(lambda: any("all records are trained" in text
                               for text in self.events(run_dir, "checkpoint-failed")),
                   30, "it is said what the job waits for")
        self.assertIn(str(kept), self.events(run_dir, "checkpoint-failed")[-1])
        self.assertIsNone(process.poll(), "it waits")
        hog.unlink()
        self.assert_exact(self.finish(process, run_dir), run_dir, records, 2)

    def test_a_run_on_a_full_disk_is_resumed_once_there_is_room(self):
        small = self.dir / "run1"  # the run directory
        small.mkdir()
        self.mount(small, "64m")
        job = self.write("job.toml", tally.job(workers=2, records=RECORDS, delay="10ms"))
        process, run_dir = self.start_job(job)
        self.await_training(run_dir, samples=1000)
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        process.communicate(timeout=60)
        hog = self.fill(small)
        refused = self.antdt("run", "--resume", run_dir)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("No space left on device", refused.stderr)
        self.assertIn("Make room", refused.stderr)
        self.assertNotIn("somebody else", refused.stderr)
        judged = self.antdt("doctor", "--run-dir", run_dir)
        self.assertRegex(judged.stdout, "No space left on device; 0.0 MiB free")
        self.assertIn("make room", judged.stdout)
        hog.unlink()
        resumed = self.antdt("run", "--resume", run_dir)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)


if __name__ == "__main__":
    unittest.main()
