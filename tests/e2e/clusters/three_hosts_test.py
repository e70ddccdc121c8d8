"""A job on three hosts that share nothing, under faults of clusters: a full disk, an unreachable
launching host, a host that loses its power and comes back. See separate_hosts.py."""

import json
import os
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import npy
import tally
from harness import await_true, needs_trainer
from separate_hosts import INSIDE, SeparateHosts, run_inside

RECORDS = 40000
EPOCHS = 2
CPUS = 3  # of each host: two hosts are enough for the six workers
# Longer than the heartbeats of a link, shorter than every timeout for a host.
CUT_SECONDS = 6


class ThreeHosts(SeparateHosts):
    """The classes below differ only in `sync` and in the attributes that they set."""
    sync = None
    roles = ""
    cpus = CPUS

    def job(self, hosts):
        text = tally.job(workers=6, records=RECORDS, epochs=EPOCHS, batch=96, delay="20ms",
                         extra=self.roles + self.cluster(*hosts))
        text = text.replace('command = ["antdt-trainer"]',
                            'command = ["antdt-trainer"]\nresources = { cpus = 1 }')
        text = text.replace('"allreduce"', f'"{self.sync}"')
        return self.write("job.toml", text + """
[checkpoint]
every = "1s"
copies = 4
[failure]
host_lost_after = "15s"
""")

    def ranked(self, run_dir):
        return [w for w in self.status(run_dir)["workers"] if w["rank"] is not None]

    def attempts(self, run_dir):
        return {w["id"]: w["attempt"] for w in self.status(run_dir)["workers"]}

    def await_more(self, run_dir, samples=3000):
        """Waits until all workers train and `samples` more are trained than at the call."""
        before = self.status(run_dir)["samples_done"]
        return self.await_status(
            run_dir, lambda s: s["samples_done"] >= before + samples
            and len([w for w in s["workers"] if w["rank"] is not None]) == 6, 120,
            f"{samples} more samples")

    def await_copy(self, host, run_dir):
        """Waits until the host has a checkpoint that it did not have at the call."""
        before = self.checkpoints_on(host, run_dir)[0]
        await_true(lambda: self.checkpoints_on(host, run_dir)[0] - before, 60,
                   f"a new checkpoint on {host.name}")

    def a_full_disk_costs_checkpoints_only(self, host, run_dir):
        """Fills the disk of the host that writes the checkpoints, until one has failed."""
        attempts = self.attempts(run_dir)
        failed = len(self.events(run_dir, "checkpoint-failed"))
        hog = host.fill(self.runs)
        await_true(lambda: len(self.events(run_dir, "checkpoint-failed")) > failed, 60,
                   f"a checkpoint fails for want of room on {host.name}")
        self.assertIn("No space left on device", self.events(run_dir, "checkpoint-failed")[-1])
        self.await_more(run_dir, 1000)
        hog.unlink()
        self.await_copy(host, run_dir)
        self.assertEqual(self.attempts(run_dir), attempts, "nobody was ended for it")

    def a_full_disk_gets_no_copy(self, host, run_dir):
        hog = host.fill(self.runs)
        await_true(lambda: any(host.endpoint in text for text in
                               self.events(run_dir, "copy-failed")), 60,
                   f"no copy can be made on {host.name}")
        self.await_more(run_dir, 1000)
        hog.unlink()
        self.await_copy(host, run_dir)

    def a_launching_host_that_nobody_reaches_is_waited_for(self, run_dir):
        attempts = self.attempts(run_dir)
        self.cut_launcher()
        time.sleep(CUT_SECONDS)  # the fault's time, not a wait for anything
        self.join_launcher()
        self.await_more(run_dir)
        self.assertEqual(self.attempts(run_dir), attempts, "nobody was ended for it")

    def a_host_without_power_is_done_without(self, host, run_dir):
        host.die()
        await_true(lambda: any(host.name in text for text in self.events(run_dir, "host-lost")),
                   60, f"{host.name} is given up")
        self.await_more(run_dir)
        self.assertNotIn(host.name, {w["host"] for w in self.ranked(run_dir)})

    def model(self, run_dir):
        """How often each record entered the model that the launching host exports."""
        done = self.antdt("model", "export", run_dir, "--out", self.dir / "model")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.counts_of(npy.Model(self.dir / "model"))

    def check(self):
        hosts = [self.add_host(f"host{x}", cpus=self.cpus, size="32m") for x in "bcd"]
        process, run_dir = self.launch(self.job(hosts))
        self.await_training(run_dir, samples=2000)
        self.a_full_disk_costs_checkpoints_only(self.writer_first(hosts, run_dir)[0], run_dir)
        self.a_full_disk_gets_no_copy(self.writer_first(hosts, run_dir)[1], run_dir)
        self.a_launching_host_that_nobody_reaches_is_waited_for(run_dir)
        lost = self.writer_first(hosts, run_dir)[0]
        self.a_host_without_power_is_done_without(lost, run_dir)
        lost.come_back(self.dir / "keys", self.cpus)
        self.await_copy(lost, run_dir)
        summary = self.finish(process, run_dir, timeout=300)
        self.assert_audit_kept(summary, run_dir)
        counts = self.model(run_dir)
        self.assertEqual(len(counts), RECORDS)
        self.assertEqual(set(counts), {float(EPOCHS)}, "a record did not count once an epoch")
        last = tally.newest(run_dir).name
        for host in hosts:
            self.assertIn(last, self.checkpoints_on(host, run_dir)[0], host.name)
        self.assert_hosts_have_nothing_left(run_dir)
        self.assertEqual([p for p in self.runtime.rglob("*.sock") if "/antdt/" in str(p)], [])

    def assert_audit_kept(self, summary, run_dir):
        audit = self.antdt("data", "audit", run_dir)
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        self.assertIn("kept", audit.stdout)
        audit = json.loads(self.antdt("data", "audit", run_dir, "--json").stdout)
        for epoch in audit["epochs"]:
            self.assertEqual((epoch["once"], epoch["repeated"], epoch["lost"]), (RECORDS, 0, 0))
        self.assertEqual(summary["samples_trained"], RECORDS * EPOCHS)


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class AllReduce(ThreeHosts):
    sync = "allreduce"

    def writer_first(self, hosts, run_dir):
        (name,) = [w["host"] for w in self.ranked(run_dir) if w["rank"] == 0]
        return sorted(hosts, key=lambda host: host.name != name)

    def counts_of(self, model):
        return model.parameters["tally"][1]

    def test_the_job_ends_with_an_exact_model_whatever_happens_to_a_host(self):
        self.check()


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class ParameterServers(ThreeHosts):
    """Two of the hosts have one server each, which writes its part of a checkpoint there."""
    sync = "ps-bsp"
    roles = "[roles.server]\ncount = 2\n"
    cpus = CPUS + 1  # two hosts are enough for the servers, too

    def servers(self, run_dir):
        """The servers' hosts, the second server's first, once no server is being moved."""
        def settled():
            status = self.status(run_dir)
            found = sorted(status["servers"], key=lambda s: int(s["id"][1:]) % 2, reverse=True)
            both = len(found) == 2 and all(s["state"] == "joined" for s in found)
            return both and [s["host"] for s in found]
        return await_true(settled, 60, "two servers")

    def writer_first(self, hosts, run_dir):
        """The second server's host, then the hosts without a server, then the first server's."""
        names = self.servers(run_dir)
        return sorted(hosts, key=lambda h: 0 if h.name == names[0] else 1 + (h.name in names))

    def counts_of(self, model):
        return [values[0] for values in model.tables["tally"].values()]

    def test_the_job_ends_with_an_exact_model_whatever_happens_to_a_host(self):
        self.check()


class InNamespacesOfTheirOwn(unittest.TestCase):
    def test_all_reduce(self):
        run_inside(self, __file__, "AllReduce")

    def test_parameter_servers(self):
        run_inside(self, __file__, "ParameterServers")


if __name__ == "__main__":
    unittest.main()
