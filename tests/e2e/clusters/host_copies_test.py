"""Copies of checkpoints on a host that was away. See separate_hosts.py."""

import json
import os
import re
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import await_true, needs_trainer
from separate_hosts import EMULATED, INSIDE, SeparateHosts, run_inside

MEGABYTES, MBIT = 24, 32  # six seconds on the wire
CUT_SECONDS = 14  # longer than a link is silent before it is given up


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class Copies(SeparateHosts):
    def job(self, hosts, workers, copies, megabytes=1, lost_after="60s", every="2s"):
        return self.write("job.toml", EMULATED.format(
            workers=workers, copies=copies, parameters=megabytes * 250_000, lost_after=lost_after,
            every=every, cluster=self.cluster(*hosts)))

    def arrived(self, directory, least, most):
        """The unfinished checkpoint of which between `least` and `most` bytes have arrived, and how
        many."""
        for path in directory.glob(".tmp-*/*"):
            try:
                # The bytes on the disk, not the file's final length.
                bytes_there = path.stat().st_blocks * 512
            except FileNotFoundError:  # it got its name just now
                continue
            if least <= bytes_there <= most:
                return path.parent, bytes_there
        return None

    def sent_by(self, host):
        """Bytes that the host has put on its wire."""
        with open("/proc/net/dev", encoding="ascii") as lines:
            (counts,) = [line.split(":")[1].split() for line in lines
                         if line.strip().startswith(host.link_name + ":")]
        return int(counts[0])  # the switch's end has received them

    def test_a_host_that_was_away_is_cleaned_when_it_is_back(self):
        b, c = self.add_host("hostb", cpus=1), self.add_host("hostc", cpus=1)
        process, run_dir = self.launch(self.job([b, c], 1, 3, lost_after="5s"))
        await_true(lambda: self.checkpoints_on(c, run_dir)[0], 60, "hostc has a copy")
        c.die()
        await_true(lambda: self.events(run_dir, "host-lost"), 60, "hostc is given up")
        old = self.checkpoints_on(c, run_dir)[0]
        # Like that of a member that died before the job went back to a checkpoint: its number is
        # higher than all that follow.
        given_up = c.path(run_dir / "checkpoints" / ".tmp-99999999-g0-w7.1")
        given_up.mkdir()
        (given_up / "tally.f32").write_bytes(b"left")
        await_true(lambda: not old & {p.name for p in (run_dir / "checkpoints").iterdir()}, 60,
                   "what hostc has is not kept any more")
        c.come_back(self.dir / "keys", 1)
        await_true(lambda: not given_up.exists() and not old & self.checkpoints_on(c, run_dir)[0],
                   60, "hostc is cleaned")
        await_true(lambda: tally.newest(run_dir).name in self.checkpoints_on(c, run_dir)[0], 60,
                   "hostc has a copy again")
        stopped = self.antdt("stop", run_dir)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        process.communicate(timeout=60)
        self.assertEqual(json.loads((run_dir / "summary.json").read_text())["state"], "stopped")

    def test_a_copy_goes_on_where_it_was_when_its_link_is_back(self):
        """The wire of a checkpoint's source host is cut in the middle of the copy, so long that its
        agent must be welcomed again. The checkpoint is kept, and bytes that had arrived are not
        sent twice."""
        b = self.add_host("hostb", cpus=1)
        process, run_dir = self.launch(self.job([b], 1, 2, megabytes=MEGABYTES, every="10s"))
        self.await_training(run_dir)
        attempts = {w["id"]: w["attempt"] for w in self.status(run_dir)["workers"]}
        self.sh(f"tc qdisc add dev {b.link_name} root tbf rate {MBIT}mbit burst 64k latency 50ms;"
                f"{' '.join(b.enter())} tc qdisc add dev far-2 root tbf rate {MBIT}mbit burst 64k "
                "latency 50ms")
        before = self.sent_by(b)
        here = run_dir / "checkpoints"
        size = MEGABYTES * 1_000_000
        unfinished, there = await_true(lambda: self.arrived(here, size // 4, size // 2), 90,
                                       "a part of a checkpoint has arrived")
        welcomes = len(self.events(run_dir, "host"))
        b.link("down")
        time.sleep(CUT_SECONDS)  # the fault's time, not a wait for anything
        self.assertTrue(unfinished.exists(), "what has arrived stays")
        b.link("up")
        number = int(re.match(r"\.tmp-(\d+)-", unfinished.name)[1])

        def kept():
            return [p.name for p in here.glob("s*") if int(p.name[1:].split("-")[0]) == number]
        await_true(kept, 90, f"checkpoint {number} is kept here")
        self.assertGreater(len(self.events(run_dir, "host")), welcomes, "the link did not break")
        sent = self.sent_by(b) - before
        self.assertLess(sent, size + there * 2 // 3, "what had arrived was sent again")
        self.assertEqual(self.events(run_dir, "checkpoint-failed"), [])
        self.assertEqual({w["id"]: w["attempt"] for w in self.status(run_dir)["workers"]}, attempts)
        stopped = self.antdt("stop", run_dir, "--grace", "1s")
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        process.communicate(timeout=60)


class InNamespacesOfTheirOwn(unittest.TestCase):
    def test_copies(self):
        run_inside(self, __file__, "Copies")


if __name__ == "__main__":
    unittest.main()
