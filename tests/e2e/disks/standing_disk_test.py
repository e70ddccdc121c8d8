"""The run directory's filesystem does not answer for longer than the timeouts of a silent host and
of an absent job daemon. Nothing is lost, the job reports the trouble, and it goes on by itself."""

import json
import os
import pathlib
import shutil
import subprocess
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import BIN, await_true, needs_trainer
from hosts import Hosts

LIBRARY = BIN.parent / "tests" / "libantdt_slow_path.so"
PATIENCE = """[failure]
host_lost_after = "3s"
hang_after = "4s"
orphan_timeout = "4s"
[checkpoint]
every = "1s"
"""
# Seconds: longer than each of these. ANTDT_STALL=300 shows the same of five minutes.
STALL = int(os.environ.get("ANTDT_STALL", "5"))
RECORDS = 40000 + 2500 * (STALL - 5)  # so that the job trains for longer
# Seconds for which a private agent waits for a word of its job daemon at least: half of what
# launcher/start/start.cc gives it.
KEEPER_PATIENCE = 10


@needs_trainer
@unittest.skipUnless(LIBRARY.exists(), "the unit tests' library is not built")
class StandingDisk(Hosts, tally.TallyTest):
    def setUp(self):
        super().setUp()
        self.control = self.dir / "control"
        self.control.write_text("")
        # The programs as they are installed, but for a job daemon whose disk can stand still.
        programs = self.dir / "bin"
        programs.mkdir()
        for program in BIN.iterdir():
            if program.name in ("antdt", "antdt-jobd"):
                continue
            (programs / program.name).symlink_to(program)
        shutil.copy(BIN / "antdt", programs / "antdt")
        jobd = programs / "antdt-jobd"
        jobd.write_text(f"#!/bin/sh\nLD_PRELOAD={LIBRARY} exec {BIN}/antdt-jobd \"$@\"\n")
        jobd.chmod(0o755)
        self.programs = programs
        self.slow_env = dict(self.env, ANTDT_TEST_SLOW_CONTROL=str(self.control))

    def start(self, *args, records=RECORDS, extra=""):
        """A job whose job daemon is held up below its run directory."""
        job = self.write("job.toml", tally.job(workers=2, records=records, delay="10ms",
                                               extra=PATIENCE + extra))
        self.env = dict(self.slow_env, ANTDT_TEST_SLOW_PATH=str(self.dir / "run1"))
        run_dir = self.dir / "run1"
        process = subprocess.Popen(
            [str(self.programs / "antdt"), "run", str(job), "--run-dir", str(run_dir),
             *map(str, args)], env=self.env, cwd=self.dir, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        self.await_training(run_dir, samples=1000)
        return process, run_dir

    def begin_to_stall(self, run_dir):
        self.control.write_text("stall")
        said = self.await_status(run_dir, lambda s: s["disk_trouble"], 30, "it is said")
        self.assertIn("has not answered for", said["disk_trouble"])
        return said

    def connections(self, run_dir):
        """Of commands with the job daemon: the inodes of their sockets. That of a command that has ended
        may still be there."""
        socket = json.loads((run_dir / "control.json").read_text())["jobd_socket"]
        lines = pathlib.Path("/proc/net/unix").read_text().splitlines()
        return {line.split()[6] for line in lines if line.endswith(socket)}

    def stand_still(self, run_dir, seconds=STALL):
        """Stalls the disk until the trouble is reported, and `seconds` in all."""
        said = self.begin_to_stall(run_dir)
        explained = self.antdt("explain", run_dir)
        self.assertIn("A disk stands still: the filesystem of", explained.stdout, explained.stderr)
        # A command that is stuck on the files still asks the daemon.
        env, self.env = self.env, dict(self.env, LD_PRELOAD=str(LIBRARY))
        status = self.antdt("status", run_dir, timeout=60)
        self.env = env
        self.assertIn("has not answered for", status.stdout, status.stderr)
        during = self.await_status(run_dir, lambda s: seconds_in(s["disk_trouble"]) >= seconds,
                                   60 + seconds, "it stands still for long")
        self.control.write_text("")
        self.await_status(run_dir, lambda s: not s["disk_trouble"], 30, "it is over")
        return said, during

    def assert_nothing_was_lost(self, process, run_dir, records=RECORDS):
        summary = self.finish(process, run_dir, timeout=180 + 2 * STALL)
        self.assert_exact(summary, run_dir, records, 2)
        self.assertEqual(summary["failures"], [])
        self.assertEqual([w["attempt"] for w in summary["workers"]], [1, 1])
        events = (run_dir / "events.jsonl").read_text()
        self.assertIn('"kind":"disk-stalled"', events)
        self.assertIn('"kind":"disk-answers"', events)
        self.assertNotIn('"kind":"host-lost"', events)

    def test_with_the_journal_elsewhere_training_goes_on_meanwhile(self):
        process, run_dir = self.start("--state-dir", self.dir / "state")
        said, during = self.stand_still(run_dir)
        self.assertGreater(during["samples_done"], said["samples_done"])
        self.assert_nothing_was_lost(process, run_dir)

    def test_with_the_journal_on_it_all_processes_wait_and_none_is_lost(self):
        process, run_dir = self.start()
        self.stand_still(run_dir)
        self.assert_nothing_was_lost(process, run_dir)

    def test_a_private_agent_that_only_keeps_the_job_daemon_does_not_take_it_for_hung(self):
        keys = self.keys("keys")
        host = self.agent("hosta", keys)
        process, run_dir = self.start(records=20000, extra=self.cluster([host], keys))
        self.stand_still(run_dir, max(STALL, KEEPER_PATIENCE + 3))
        self.assert_nothing_was_lost(process, run_dir, records=20000)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["incarnations"], 1)

    def test_an_order_that_is_given_meanwhile_is_carried_out_afterwards(self):
        process, run_dir = self.start("--detach")
        self.assertEqual(process.wait(60), 0)
        self.begin_to_stall(run_dir)
        before = self.connections(run_dir)
        stop = subprocess.Popen([str(BIN / "antdt"), "stop", str(run_dir)], env=self.env,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(lambda: (stop.poll() is None and stop.kill(), stop.communicate()))
        await_true(lambda: self.connections(run_dir) - before, 20, "the order is on its way")
        time.sleep(1)  # the daemon, which only waits, reads it; nobody else asks for anything
        self.assertIsNone(stop.poll())
        self.control.write_text("")
        self.assertEqual(stop.wait(60), 0, stop.stdout.read())
        await_true(lambda: (run_dir / "summary.json").exists(), 60, "the job has stopped")
        self.assertEqual(json.loads((run_dir / "summary.json").read_text())["state"], "stopped")


def seconds_in(trouble):
    """The seconds in "… has not answered for 41 s: …"."""
    return int(trouble.split("answered for ")[1].split(" s")[0]) if trouble else 0


if __name__ == "__main__":
    unittest.main()
