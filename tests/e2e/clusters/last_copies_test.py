"""What a job that is stopped waits for at its end: the copies of its last checkpoint on slow links.
See separate_hosts.py."""

import json
import os
import subprocess
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import ANTDT, await_true, needs_trainer
from separate_hosts import EMULATED, INSIDE, SeparateHosts, run_inside

MEGABYTES, MBIT = 24, 6
# antdt stop waits 20 s beyond its grace.
GRACE, TAKES_LONGER_THAN = "1s", 22


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class LastCopies(SeparateHosts):
    def begin(self):
        """A job on hostb; hostc, to which the link is slow, is to have a copy."""
        b, c = self.add_host("hostb", cpus=1), self.add_host("hostc", cpus=1)
        job = EMULATED.format(workers=1, every="600s", copies=3, lost_after="60s",
                              parameters=MEGABYTES * 250_000, cluster=self.cluster(b, c))
        process, run_dir = self.launch(self.write("job.toml", job))
        self.await_training(run_dir)
        self.sh(f"tc qdisc add dev {c.link_name} root tbf rate {MBIT}mbit burst 64k latency 50ms")
        return c, process, run_dir

    def stop(self, run_dir, grace):
        process = subprocess.Popen([str(ANTDT), "stop", str(run_dir), "--grace", grace],
                                   env=self.env, cwd=self.dir, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(),
                                 process.communicate()))
        return process

    def test_stop_waits_for_a_copy_as_long_as_its_bytes_move(self):
        c, process, run_dir = self.begin()
        begin = time.monotonic()
        stop = self.stop(run_dir, GRACE)
        out, err = stop.communicate(timeout=180)
        self.assertEqual(stop.returncode, 0, out + err)
        self.assertGreater(time.monotonic() - begin, TAKES_LONGER_THAN, "the copy was not slow")
        self.assertIn("waiting for the copies of the last checkpoints on other hosts", err)
        self.assertIn(f"antdt stop {run_dir} --grace 0s ends the job without it", err)
        self.assertIn(tally.newest(run_dir).name, self.checkpoints_on(c, run_dir)[0])
        self.assertEqual(process.wait(30), 75)

    def test_a_second_stop_ends_the_wait(self):
        c, process, run_dir = self.begin()
        first = self.stop(run_dir, GRACE)
        await_true(lambda: (run_dir / "summary.json").exists() and self.status(run_dir)["waiting_for"],
                   60, "copies are waited for")
        begin = time.monotonic()
        second = self.antdt("stop", run_dir, "--grace", "0s")
        self.assertEqual(second.returncode, 0, second.stderr)
        self.assertLess(time.monotonic() - begin, 10)
        first.communicate(timeout=10)
        self.assertEqual(first.returncode, 0)
        self.assertEqual(process.wait(30), 75)
        self.assertEqual(json.loads((run_dir / "summary.json").read_text())["state"], "stopped")
        [lacks] = [text for text in self.events(run_dir, "copy-failed") if "is on 2 of 3" in text]
        self.assertIn(tally.newest(run_dir).name, lacks)
        self.assertEqual(self.checkpoints_on(c, run_dir)[0], set())


class InNamespacesOfTheirOwn(unittest.TestCase):
    def test_last_copies(self):
        run_inside(self, __file__, "LastCopies")


if __name__ == "__main__":
    unittest.main()
