"""A batch job of an unprivileged user: its workers are in Slurm's cgroups, its keys are nobody else's, it
stops by a signal with a checkpoint, and another job of Slurm goes on with it on other nodes."""

import pathlib
import re
import unittest

import shared  # noqa: F401 (finds what follows)
import cluster
from harness import await_true, is_built_in
from slurm_case import SlurmCase, run_inside

KEY = re.compile(rb"^[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}$")  # in Z85


class Batch(SlurmCase):
    def workers(self, node):
        return [pid for pid, command in node.processes() if is_built_in(command)]

    def assert_in_slurms_cgroup(self, job, node):
        if self.cluster.freezer is None:
            return print("no freezer cgroups here: Slurm uses proctrack/linuxproc")
        workers = self.workers(node)
        self.assertTrue(workers, node.name)
        for pid in workers:
            lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()
            mine = [line for line in lines if ":freezer:" in line]
            self.assertIn(f"/{node.name}/slurm_{node.name}/uid_{cluster.UID}/job_{job}/step_", mine[0])

    def assert_secret(self, job):
        """No key is in an argument or in the environment of a process, all processes are the user's, and
        only the user can read the keys, which are on the first node alone."""
        secrets = set()
        for machine in self.nodes.values():
            own = machine.path(self.cluster.own)
            await_true(lambda o=own: not list(o.glob("tmp/**/*.key")), 5, "agents' keys are removed")
            for path in own.glob("run/**/*.key"):
                self.assertEqual(machine.name, "n1", path)
                self.assertEqual(path.stat().st_mode & 0o777, 0o600, path)
                words = path.read_bytes().replace(b'"', b" ").split()
                secrets.update(word for word in words if KEY.match(word))
            for directory in (*own.glob("tmp/antdt-slurm-*"), *own.glob("run/antdt/*")):
                self.assertEqual(directory.stat().st_mode & 0o777, 0o700, directory)
        self.assertGreaterEqual(len(secrets), 2, "the keys of the job and of the agents were found")
        for machine in self.nodes.values():
            for pid, command in machine.processes():
                if command.startswith(("munged", "slurmd", "slurmstepd")):
                    continue
                self.assertEqual(pathlib.Path(f"/proc/{pid}").stat().st_uid, cluster.UID, command)
                seen = command.encode() + pathlib.Path(f"/proc/{pid}/environ").read_bytes()
                self.assertFalse([s for s in secrets if s in seen], command)

    def test_a_users_job_is_in_slurms_cgroups_stops_with_a_checkpoint_and_goes_on_in_another_job(self):
        self.job(records=8000)
        first = self.begin("--no-requeue")
        self.await_training()
        for node in self.nodes.values():
            self.assert_in_slurms_cgroup(first, node)
        self.assert_secret(first)
        self.cluster.slurm("scancel", "--batch", "--signal=TERM", first)
        self.assertEqual(self.ended(first), 75, self.output())
        self.assert_nothing_left()
        goes_on = self.dir / "goes_on.sh"
        goes_on.write_text(f"#!/bin/sh\nexec antdt run --launcher slurm --resume {self.run_dir}\n")
        second = self.submit(goes_on, "--ntasks-per-node=1", "--exclusive", "--exclude=n1", nodes=2)
        self.assertEqual(self.ended(second), 0, self.output())
        self.assert_nothing_left()
        self.assert_exact()
        addresses = (self.run_dir / "effective.toml").read_text()
        for node in (self.nodes["n2"], self.nodes["n3"]):
            self.assertIn(f"{node.address}:{20000 + int(second)}", addresses)

    def test_a_job_that_is_cancelled_is_not_requeued_and_leaves_nothing(self):
        self.job(records=20000)
        job = self.begin()
        self.await_training()
        self.cluster.slurm("scancel", job)
        self.await_no_jobs()
        fields = self.fields(job)
        self.assertEqual((fields["JobState"], fields["Restarts"]), ("CANCELLED", "0"), self.output())
        self.assert_nothing_left()


class InNamespaces(unittest.TestCase):
    def test_batch_jobs(self):
        run_inside(self, __file__, "Batch")


if __name__ == "__main__":
    unittest.main()
