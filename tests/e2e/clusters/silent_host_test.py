"""A host falls silent without closing its connections: its link goes down, as when a switch dies or
a cable is pulled. The test makes two network namespaces with a wire between them; it is skipped if
that is not possible."""

import json
import os
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import await_true, processes_of
from two_networks import HERE, INSIDE, THERE, TwoNetworks, run_inside

JOB = """
schema = 1
[job]
name = "silent"
[roles.worker]
count = 2
protocol = "exec"
command = ["sh", "-c", "echo up; while [ ! -e {go} ]; do sleep 0.05; done"]
resources = {{ cpus = 1 }}
[cluster]
hosts = ["{here}:7700", "{there}:7700"]
keys = "{keys}"
[failure]
host_lost_after = "2s"
orphan_timeout = "{orphan_timeout}"
"""


@unittest.skipUnless(INSIDE in os.environ, "runs in a network of its own only")
class SilentHost(TwoNetworks):
    def job(self, name, orphan_timeout):
        return self.write(name, JOB.format(go=self.dir / "go", here=HERE, there=THERE,
                                           keys=self.dir / "keys", orphan_timeout=orphan_timeout))

    def workers_there(self):
        """Processes of jobs below the second agent, by its socket in their environment.
        Not the naps of their shells, which come and go."""
        socket = self.runtime / "hostb" / "workers.sock"
        return [pid for pid, command in processes_of(f"ANTDT_SOCKET={socket}")
                if not command.startswith("sleep")]

    def start_both_workers(self, orphan_timeout):
        process, run_dir = self.start_job(self.job("job.toml", orphan_timeout))

        def both_up():
            self.assertIsNone(process.poll(), "the job ended early")
            return all((run_dir / "logs" / f"w{i}.1.out").exists() for i in (0, 1))
        await_true(both_up, 60, "both workers run")
        self.assertNotEqual(self.workers_there(), [])
        return process, run_dir

    def test_a_host_that_hears_nothing_ends_its_workers_and_serves_the_next_job(self):
        agent = self.both_agents()
        process, _ = self.start_both_workers(orphan_timeout="4s")
        self.link("down")
        # The unreachable host ends them itself, long before the link is back.
        await_true(lambda: not self.workers_there(), 60, "the silent host ended its workers")
        self.assertIsNone(agent.poll(), "the agent itself lives")
        log = (self.dir / "hostb.log").read_text()
        self.assertIn("its daemon has been silent", log)
        (self.dir / "go").touch()
        self.link("up")
        process.communicate(timeout=120)
        await_true(lambda: not self.workers_there(), 60, "nothing of the first job runs there")
        run = self.run_job(self.job("next.toml", "4s"), timeout=120)
        self.assert_done(run)
        self.assertEqual({w["host"] for w in run.summary["workers"]}, {"hosta", "hostb"})

    def test_processes_of_a_lost_host_are_ended_when_the_link_is_back(self):
        self.both_agents()
        # Here the host would end them itself only after an hour.
        process, run_dir = self.start_both_workers(orphan_timeout="3600s")
        lost = self.workers_there()
        self.link("down")
        await_true(lambda: process.poll() is not None or
                   '"host-lost"' in (run_dir / "events.jsonl").read_text(), 60,
                   "the job daemon gives the host up")
        self.assertEqual(set(lost) & set(self.workers_there()), set(lost), "nobody told it")
        self.link("up")
        await_true(lambda: not set(lost) & set(self.workers_there()), 60,
                   "the attempts that the job gave up are ended")
        (self.dir / "go").touch()
        process.communicate(timeout=120)
        await_true(lambda: not self.workers_there(), 60, "nothing of the job runs there")

    def test_a_link_that_is_away_for_a_moment_changes_nothing(self):
        self.both_agents()
        process, run_dir = self.start_both_workers(orphan_timeout="60s")
        self.link("down")
        self.link("up")
        (self.dir / "go").touch()
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual([w["attempt"] for w in summary["workers"]], [1, 1])


class InANetworkOfItsOwn(unittest.TestCase):
    def test_silent_hosts(self):
        run_inside(self, __file__, "SilentHost")


if __name__ == "__main__":
    unittest.main()
