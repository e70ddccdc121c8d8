"""Checkpoints cannot be listed or read for a while, as when a file server is away. They are not taken
for damaged: the job waits for them, and does not begin anew."""

import ctypes
import os
import shutil
import signal
import subprocess
import unittest

import broken_off
import server_jobs
import tally
from broken_off import EXTRA, RECORDS
from harness import ANTDT, BIN, await_true, needs_trainer


def exchange(one, other):
    """At no moment is either of them missing."""
    here, exchanges = -100, 2
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), exchanges) != 0:
        raise OSError(ctypes.get_errno(), f"exchanging {one} and {other}")


@needs_trainer
class Unreadable(broken_off.BrokenOff, server_jobs.ServersTest):
    def setUp(self):
        super().setUp()
        self.view, self.target = self.dir / "view", self.dir / "target"

    def test_a_job_that_cannot_list_its_checkpoints_waits_until_it_can(self):
        job = self.write("job.toml", tally.job(workers=2, records=RECORDS, delay="10ms", extra=EXTRA))
        process, run_dir = self.start_job(job)
        self.await_training(run_dir)
        await_true(lambda: self.checkpoints(run_dir), 60, "a checkpoint")
        folder, away = run_dir / "checkpoints", run_dir / "away"
        away.write_text("no folder")
        exchange(folder, away)
        for worker in self.await_answer(run_dir)["workers"]:
            self.kill(worker["pid"])
        await_true(lambda: self.events(run_dir, "checkpoint-unknown"), 60, "a word about it")
        [said] = self.events(run_dir, "checkpoint-unknown")
        self.assertRegex(said, "checkpoints cannot be listed: .*The job waits until")
        self.assertEqual(self.events(run_dir, "restored"), [])
        exchange(folder, away)
        summary = self.finish(process, run_dir)
        [restored] = self.events(run_dir, "restored")
        self.assertIn(f"from {folder}/s", restored)
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    @staticmethod
    def hidden(path):
        """Puts a directory in the file's place, which is there and cannot be read; returns what puts
        the file back."""
        away = path.with_suffix(".away")
        away.mkdir()
        exchange(path, away)
        return lambda: exchange(path, away)

    def test_a_job_none_of_whose_checkpoints_can_be_read_waits_until_one_can(self):
        run_dir = self.broken_off()
        process = subprocess.Popen(
            [ANTDT, "run", "--resume", str(run_dir), "--set", "checkpoint.every=1h"], env=self.env,
            cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        status = self.await_training(run_dir)
        kept = [path.parent for path in self.checkpoints(run_dir)]
        put_back = [self.hidden(path / "tally.f32") for path in kept]
        restored = len(self.events(run_dir, "restored"))
        for worker in status["workers"]:
            self.kill(worker["pid"])
        await_true(lambda: self.events(run_dir, "checkpoint-unknown"), 60, "a word about it")
        [said] = self.events(run_dir, "checkpoint-unknown")
        self.assertRegex(said, f"checkpoint {kept[-1]} cannot be read: tally.f32 .*"
                               "The job waits until .*If one is lost, remove it")
        self.assertEqual(len(self.events(run_dir, "restored")), restored)
        put_back[-1]()
        summary = self.finish(process, run_dir)
        self.assertIn(f"from {kept[-1]} ", self.events(run_dir, "restored")[-1])
        self.assertEqual(self.events(run_dir, "checkpoint-damaged"), [])
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    def test_a_checkpoint_that_cannot_be_read_is_waited_for_and_then_an_older_one_goes_on(self):
        run_dir = self.broken_off()
        _, middle, newest = (p.parent for p in self.checkpoints(run_dir))
        self.hidden(newest / "tally.f32")
        done, summary = self.resume(run_dir)
        self.assertIn(f"checkpoint {newest} cannot be read: tally.f32", done.stderr)
        self.assertIn(f"training goes on from {middle} ", done.stdout)
        self.assertIn("if the newer one cannot be read within a minute", done.stdout)
        waits, passed = self.events(run_dir, "checkpoint-unknown")
        self.assertIn(f"The job waits a minute for it; then training goes on from {middle}", waits)
        self.assertRegex(passed, f"{newest} cannot be read: .*After a minute training goes on from "
                                 f"{middle} ")
        self.assertEqual(self.events(run_dir, "checkpoint-damaged"), [])
        self.assertIn(str(middle), self.events(run_dir, "restored")[-1])
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    def program(self, name):
        """A program of the job that sees `view` in place of the directory that `target` names, once
        there is a view. Who else looks there sees what is there."""
        program = self.write(f"bin/{name}", f"""#!/bin/sh
[ -e {self.view} ] || exec {BIN / name} "$@"
exec unshare -rm sh -c 'mount --bind {self.view} "$(readlink {self.target})" &&
  exec {BIN / name} "$@"' - "$@"
""")
        program.chmod(0o755)
        return program

    def restored_badly(self, job, name):
        """Kills all workers and servers of a new job, after which they cannot read this file of the
        newest checkpoint, and the job daemon can."""
        tried = subprocess.run(["unshare", "-rm", "mount", "--bind", "/tmp", "/mnt"],
                               capture_output=True, text=True)
        if tried.returncode != 0:
            self.skipTest("no mounts of its own: " + tried.stderr.strip())
        process, run_dir = self.start_job(job)
        self.await_training(run_dir)
        await_true(lambda: self.checkpoints(run_dir), 60, "a checkpoint")
        status = self.await_answer(run_dir)
        daemon = self.jobd_pid(run_dir)
        self.kill(daemon, signal.SIGSTOP)  # so that no newer one is stored
        for one in status["workers"] + status.get("servers", []):
            self.kill(one["pid"])
        newest = tally.newest(run_dir)
        self.target.symlink_to(newest)
        shutil.copytree(newest, self.view)  # nobody is started meanwhile
        put_back = self.hidden(self.view / name)
        self.kill(daemon, signal.SIGCONT)
        await_true(lambda: self.events(run_dir, "checkpoint-unknown"), 60, "a word about it")
        self.assertIn("checkpoint", self.await_answer(run_dir)["waiting_for"])
        return process, run_dir, newest, put_back

    def test_a_checkpoint_that_only_the_job_daemon_can_read_is_tried_again(self):
        job = tally.job(workers=2, records=RECORDS, delay="10ms", extra=EXTRA)
        process, run_dir, newest, put_back = self.restored_badly(self.write("job.toml", job.replace(
            "antdt-trainer", str(self.program("antdt-trainer")))), "tally.f32")
        [said] = self.events(run_dir, "checkpoint-unknown")
        self.assertRegex(said, f"no member can read the checkpoint {newest}: "
                               "w0 on .*/tally.f32 cannot be read: .*; w1 on .*The job waits until")
        put_back()
        summary = self.finish(process, run_dir)
        [restored] = self.events(run_dir, "restored")
        self.assertIn(f"from {newest} ", restored)
        self.assertEqual(summary["lineages"], 2)
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    def test_slices_that_only_the_job_daemon_can_read_are_tried_again(self):
        self.slices_are_tried_again("ps-bsp")

    def test_slices_of_a_hybrid_job_are_tried_again(self):
        self.slices_are_tried_again("hybrid")

    def slices_are_tried_again(self, sync):
        server = f'command = ["{self.program("antdt-server")}"]\n{EXTRA}'
        job = server_jobs.job(workers=2, records=RECORDS, delay="10ms", extra=server, sync=sync)
        process, run_dir, newest, put_back = self.restored_badly(
            self.write("job.toml", job), "slice-05.rows")
        [said] = self.events(run_dir, "checkpoint-unknown")
        self.assertRegex(said, f"servers cannot read the checkpoint {newest}: s. on .*"
                               "/slice-05.rows cannot be read: .*The job waits until")
        put_back()
        summary = self.finish(process, run_dir)
        self.assertIn(f"from {newest} ", self.events(run_dir, "restored")[-1])
        self.assertEqual(len(summary["failures"]), 4, "those that were killed")
        self.assert_exact_on_servers(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    def test_a_run_of_which_no_checkpoint_can_be_read_is_not_begun_anew(self):
        run_dir = self.broken_off()
        oldest, *others = self.checkpoints(run_dir)
        for path in others:
            (path.parent / "tally.f32").unlink()
        put_back = self.hidden(oldest)
        refused = self.antdt("run", "--resume", run_dir)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("tally.f32 is missing", refused.stderr)
        self.assertIn("nothing was started. Make it readable and resume", refused.stderr)
        put_back()
        done, summary = self.resume(run_dir)
        self.assertIn("training goes on from", done.stdout)
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    def test_a_run_whose_checkpoints_cannot_be_listed_is_not_begun_anew(self):
        run_dir = self.broken_off()
        folder, away = run_dir / "checkpoints", run_dir / "away"
        away.write_text("no folder")
        exchange(folder, away)
        refused = self.antdt("run", "--resume", run_dir)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("checkpoints cannot be listed", refused.stderr)
        self.assertIn("nothing was started. Make the directory readable and resume", refused.stderr)
        exchange(folder, away)
        done, summary = self.resume(run_dir)
        self.assertIn("training goes on from", done.stdout)
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
