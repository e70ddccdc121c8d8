"""Nodes that a job loses while it trains: one fails and the job has --no-kill; one is given back by
`scontrol update`; one fails that has the batch script. The job goes on, and its records are exact."""

import time
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import await_true
from slurm_case import SlurmCase, run_inside


class Nodes(SlurmCase):
    def await_goes_on(self, since, seconds):
        await_true(lambda: any("2 workers" in e for e in self.events("generation")), seconds,
                   f"the others go on: {self.output()}")
        return time.monotonic() - since

    def key_files(self, node):
        return list(node.path(self.cluster.own).glob("tmp/**/*.key"))

    def assert_next_job_clears(self, name):
        """The files of an agent that was killed hold no secret, and are removed by the user's next
        job on that node."""
        left = self.files(self.nodes[name])
        self.assertEqual(len(left), 1, left)
        self.assertIn("tmp/antdt-slurm-", left[0])
        self.assertEqual(self.key_files(self.nodes[name]), [])
        self.job(workers=1, records=500)
        next_job = self.begin(f"--nodelist={name}", nodes=1)
        self.assertEqual(self.ended(next_job), 0, self.output())
        self.assert_nothing_left()

    def test_a_node_that_fails_is_a_lost_host(self):
        self.job(records=15000, delay="60ms", extra='[failure]\nhost_lost_after = "5s"\n')
        job = self.begin()
        self.await_training(samples=1000)
        lost = time.monotonic()
        self.nodes["n3"].lose_power()
        took = self.await_goes_on(lost, 20)
        print(f"training goes on {took:.1f} s after the power of n3 was cut", flush=True)
        await_true(lambda: self.fields(job)["NodeList"] == "n[1-2]", 40, "Slurm gives the node up")
        self.assertEqual(self.fields(job)["JobState"], "RUNNING", self.output())
        trained = self.status()["samples_done"]
        self.assertEqual(self.ended(job), 0, self.output())
        print(f"{trained} of {self.records} samples were trained when Slurm gave n3 up", flush=True)
        self.assert_exact()
        self.assertIn("n3: nothing was heard from it", "".join(self.events("host-lost")))
        self.assert_nothing_left("n3")
        self.nodes["n3"].come_back()
        self.assert_next_job_clears("n3")

    def test_a_job_whose_first_node_fails_is_requeued_and_goes_on_without_the_journal(self):
        # The journal is on the node's own disk, as it must be if the run directory is on NFS.
        self.job(workers=1, records=8000, delay="50ms", extra='[checkpoint]\nevery = "1s"\n')
        job = self.begin(local_journal=True, nodes=1)
        self.await_training(samples=500)
        await_true(lambda: list((self.run_dir / "checkpoints").glob("s*")), 20, "a checkpoint")
        self.nodes["n1"].lose_power()
        self.say("n1 is lost")
        await_true(lambda: self.fields(job).get("Restarts") == "1", 60, "Slurm requeues the job")
        self.say("Slurm requeues the job")
        self.assertEqual(self.ended(job, 90), 0, self.output())
        self.say("it has ended")
        self.assertEqual(self.batch_host(job), "n2")
        self.assertIn("this host has no journal of the run", self.output())
        self.assert_exact(self.nodes["n2"])
        self.nodes["n2"].must(f"rm -r {self.cluster.own}/tmp/tally-*")
        self.assert_nothing_left("n1")
        self.nodes["n1"].must(f"rm -r {self.cluster.own}/tmp/* {self.cluster.own}/run/antdt")
        self.nodes["n1"].come_back()

    def test_a_node_that_is_given_back_is_noticed_at_once(self):
        self.job(records=12000)
        job = self.begin()
        self.await_training(samples=1000)
        given = time.monotonic()
        done = self.cluster.run(self.login, "scontrol", "update", f"JobId={job}", "NumNodes=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        took = self.await_goes_on(given, 15)
        print(f"training goes on {took:.1f} s after `scontrol update NumNodes=2`", flush=True)
        self.assertEqual(self.fields(job)["NodeList"], "n[1-2]")
        self.assertIn("n3: the step of its agent has ended", "".join(self.events("host-lost")))
        await_true(lambda: not self.nodes["n3"].of_jobs(), 5, "n3 has no process of the job")
        self.assertEqual(self.ended(job), 0, self.output())
        self.assert_exact()
        self.assert_nothing_left("n3")
        self.assert_next_job_clears("n3")


class InNamespaces(unittest.TestCase):
    def test_nodes_that_are_lost(self):
        run_inside(self, __file__, "Nodes")


if __name__ == "__main__":
    unittest.main()
