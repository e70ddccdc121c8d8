"""A job that reaches its time limit stores a checkpoint, and goes on from it when Slurm has started it
again, on another first node."""

import os
import pathlib
import unittest

import shared  # noqa: F401 (finds what follows)
import cluster
from etcd import IS_THERE, Certificates, Etcd
from harness import await_true
from separate_hosts import LAUNCHER
from slurm_case import SlurmCase, run_inside


class Requeue(SlurmCase):
    def undrain(self):
        self.cluster.administer("scontrol", "update", "NodeName=n1", "State=RESUME")
        self.cluster.await_idle()

    def store(self):
        """[cluster] of a job whose journal is in an etcd on the login host."""
        if not IS_THERE:
            print("no etcd here: the journal is in the run directory", flush=True)
            return ""
        certificates = Certificates(self.dir / "certificates", [LAUNCHER])
        store = Etcd(self.dir / "etcd", certificates=certificates, places=[(LAUNCHER, self.login.enter())])
        self.addCleanup(store.stop)
        for path in pathlib.Path(store.client_key).parent.iterdir():
            os.chown(path, cluster.UID, cluster.UID)
        return (f'[cluster]\nstore = "{store.url}"\nstore_ca = "{certificates.ca}"\n'
                f'store_cert = "{store.client_certificate}"\nstore_key = "{store.client_key}"\nstandbys = 0\n')

    def test_at_the_time_limit_a_job_stores_a_checkpoint_and_goes_on_when_it_is_requeued(self):
        self.job(workers=2, records=36000, delay="60ms", extra=self.store())
        # slurmctld looks at the limits every 30 s, so the signal comes within 30 s.
        job = self.begin("--time=1", "--signal=B:TERM@40", nodes=2)
        self.await_training()
        self.assertEqual(self.batch_host(job), "n1")
        # The job gets other nodes when it is started again.
        self.cluster.administer("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=test")
        self.addCleanup(self.undrain)
        await_true(lambda: self.fields(job).get("Restarts") == "1", 60,
                   f"the job is requeued: {self.output()}")
        self.say("the job was stopped and is requeued")
        self.assertIn("terminated (SIGTERM)", self.output())
        self.assertIn("stopped; go on with", self.output())
        self.assertEqual(self.ended(job), 0, self.output())
        self.say("it has ended")
        self.assertEqual(self.batch_host(job), "n2")
        self.assertIn("training goes on from", self.output())
        self.assert_exact()
        self.assertEqual((self.run_dir / "state.db").exists(), not IS_THERE)
        self.assert_nothing_left()


class InNamespaces(unittest.TestCase):
    def test_requeued_jobs(self):
        run_inside(self, __file__, "Requeue")


if __name__ == "__main__":
    unittest.main()
