"""Jobs on hosts that share nothing; see separate_hosts.py."""

import os
import shutil
import signal
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
import server_jobs
import tally
from harness import BIN, await_true, needs_trainer
from separate_hosts import INSIDE, SeparateHosts, run_inside

RECORDS = 6000
FAILURES = """
[failure]
hang_after = "10s"
host_lost_after = "3s"
budgets = { program = 1000, signal = 1000, hang = 1000, host = 1000 }
[checkpoint]
every = "1s"
"""


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class AllReduce(SeparateHosts):
    def job(self, hosts, extra="", **options):
        options = {"workers": 2, "records": RECORDS, **options}
        extra = 'resources = { cpus = 1 }\n' + extra
        text = tally.job(extra=self.cluster(*hosts), **options)
        text = text.replace('command = ["antdt-trainer"]', 'command = ["antdt-trainer"]\n' + extra)
        return self.write("job.toml", text + '[checkpoint]\nevery = "1s"\n')

    def test_the_launching_host_has_the_files_of_workers_elsewhere(self):
        b, c = self.add_host("hostb"), self.add_host("hostc")
        process, run_dir = self.launch(self.job([b, c], workers=4, delay="10ms"))
        summary = self.finish(process, run_dir)
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assertEqual({w["host"] for w in summary["workers"]}, {"hostb", "hostc"})
        last = tally.newest(run_dir).name
        copies = [h.name for h in (b, c) if last in self.checkpoints_on(h, run_dir)[0]]
        self.assertEqual(len(copies), 1, "checkpoint.copies = 2: here and on one more host")
        self.assert_hosts_have_nothing_left(run_dir)

    def test_a_job_waits_for_the_host_that_has_its_only_checkpoint(self):
        b, c = self.add_host("hostb"), self.add_host("hostc")
        job = self.job([b, c], workers=4, delay="10ms")
        job.write_text(job.read_text().replace('[checkpoint]\nevery = "1s"\n', FAILURES))
        process, run_dir = self.launch(job)

        def with_copy():
            return [h for h in (b, c) if self.checkpoints_on(h, run_dir)[0]]
        await_true(with_copy, 60, "a copy on another host")
        # All is lost at once, and the launching host's own copy too.
        daemon = self.jobd_pid(run_dir)
        self.kill(daemon, signal.SIGSTOP)
        for host in (b, c):
            host.die()
        shutil.rmtree(run_dir / "checkpoints")
        holder = with_copy()[0]
        other = c if holder is b else b
        shutil.rmtree(other.path(run_dir / "checkpoints"), ignore_errors=True)
        self.kill(daemon, signal.SIGCONT)
        other.come_back(self.dir / "keys", 2)
        await_true(lambda: any(f"{holder.endpoint} is not there. A checkpoint was stored" in text
                               for text in self.events(run_dir, "checkpoint-unknown")), 60,
                   "the job says for whom it waits")
        self.assertEqual(self.events(run_dir, "restored"), [])
        holder.come_back(self.dir / "keys", 2)
        summary = self.finish(process, run_dir)
        [restored] = self.events(run_dir, "restored")
        self.assertIn(" begins from ", restored)
        self.assert_exact(summary, run_dir, RECORDS, 2)


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class ParameterServers(SeparateHosts, server_jobs.ServersTest):
    """Each server writes its slices on its own host."""

    def job(self, hosts, extra_roles="", **options):
        options = {"workers": 2, "records": RECORDS, "delay": "10ms", **options}
        text = server_jobs.job(extra=extra_roles + FAILURES + self.cluster(*hosts), **options)
        return self.write("job.toml", text.replace(
            'command = ["antdt-trainer"]',
            'command = ["antdt-trainer"]\nresources = { cpus = 1 }'))

    def hosts_of(self, status):
        return {s["id"]: self.hosts[s["host"]] for s in status["servers"]
                if s["state"] == "joined"}

    def await_checkpoint(self, run_dir):
        """The checkpoint's name and the hosts with a copy, once enough hosts have it."""
        def copied():
            for name in server_jobs.newest_names(run_dir):
                hosts = [h for h in self.hosts.values()
                         if name in self.checkpoints_on(h, run_dir)[0]]
                if hosts:
                    return name, hosts
            return None
        return await_true(copied, 60, "a checkpoint with a copy on another host")

    def assert_trained(self, process, run_dir, records=RECORDS):
        """Records counted exactly once in each epoch; the launching host has all files, and one
        other host a copy."""
        summary = self.finish(process, run_dir, timeout=400)
        self.assert_exact_on_servers(summary, run_dir, records, 2)
        last = tally.newest(run_dir).name
        copies = [h.name for h in self.hosts.values()
                  if h.agent.poll() is None and last in self.checkpoints_on(h, run_dir)[0]]
        self.assertGreaterEqual(len(copies), 1, "checkpoint.copies = 2: here and elsewhere")
        self.export(run_dir)
        return summary

    def resume(self, run_dir):
        process = subprocess.Popen(
            [str(BIN / "antdt"), "run", "--resume", str(run_dir)], env=self.env, cwd=self.dir,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(),
                                 process.communicate()))
        return process

    def export(self, run_dir):
        done = self.antdt("model", "export", run_dir, "--out", self.dir / "model")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(list((self.dir / "model").iterdir()))

    def test_the_launching_host_has_the_files_of_servers_elsewhere(self):
        b, c = self.add_host("hostb"), self.add_host("hostc")
        process, run_dir = self.launch(self.job([b, c]))
        summary = self.assert_trained(process, run_dir)
        self.assertEqual({s["host"] for s in summary["servers"]}, {"hostb", "hostc"})
        self.assertEqual(summary["lineages"], 1)
        self.assert_hosts_have_nothing_left(run_dir)

    def three_hosts(self, sync, **options):
        """A job on three hosts that has a checkpoint; also returns the hosts of its servers."""
        hosts = [self.add_host(name, cpus=4) for name in ("hostb", "hostc", "hostd")]
        options = {"records": 2 * RECORDS, "workers": 3, "sync": sync, **options}
        process, run_dir = self.launch(self.job(hosts, **options))
        self.await_checkpoint(run_dir)
        return process, run_dir, self.hosts_of(self.await_training(run_dir, samples=RECORDS))

    def check_host_that_dies(self, sync):
        process, run_dir, before = self.three_hosts(sync)
        before["s1"].die()
        summary = self.assert_trained(process, run_dir, 2 * RECORDS)
        self.assertEqual(summary["lineages"], 2, self.breaks_of(run_dir))  # all went back once
        self.assertNotIn(before["s1"].name, {s["host"] for s in summary["servers"]})
        self.assertIn(" begins from ", self.events(run_dir, "restored")[-1])

    def test_a_servers_host_that_dies_takes_no_checkpoint_with_it_where_all_wait_for_each_step(self):
        self.check_host_that_dies("ps-bsp")

    def test_without_a_barrier_the_death_of_a_servers_host_loses_no_checkpoint(self):
        self.check_host_that_dies("ps-asp")

    def test_a_new_job_daemon_brings_servers_the_checkpoint_they_go_back_to(self):
        process, run_dir, before = self.three_hosts("ps-bsp")
        before["s1"].die()
        await_true(lambda: self.events(run_dir, "generation-broken"), 30, "the group is over")
        self.kill(self.jobd_pid(run_dir))
        summary = self.assert_trained(process, run_dir, 2 * RECORDS)
        self.assertGreaterEqual(summary["incarnations"], 2)

    def test_a_server_whose_disk_is_full_is_moved_and_the_model_is_whole(self):
        process, run_dir, before = self.three_hosts("ps-bsp", records=4 * RECORDS)
        full = before["s1"]

        def moves():
            full.fill(self.runs)  # again, because an older checkpoint was removed
            self.assertIsNone(process.poll(), "the job was over too soon")
            return self.events(run_dir, "move")
        moved = await_true(moves, 120, "the server is moved")
        summary = self.assert_trained(process, run_dir, 4 * RECORDS)
        self.assertRegex(moved[0], f"s1 is moved from {full.name} to .*No space left on device")
        self.assertNotIn(full.name, {s["host"] for s in summary["servers"]})
        self.assertEqual(summary["lineages"], 1, self.breaks_of(run_dir))  # nobody went back

    def resize_servers(self, run_dir, count):
        """Repeats the command while it is refused because the servers do not serve at that moment."""
        while True:
            done = self.antdt("resize", run_dir, count, "--role", "server")
            if "try again soon" not in done.stderr:
                break
            self.await_status(run_dir, lambda s: s["state"] == "training", 60, "it trains again")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_stopped_run_goes_on_and_additional_servers_find_their_files(self):
        process, run_dir, _ = self.three_hosts("ps-ssp", records=4 * RECORDS)
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75)
        process = self.resume(run_dir)
        self.await_training(run_dir, samples=3 * RECORDS)
        self.resize_servers(run_dir, 3)
        summary = self.assert_trained(process, run_dir, 4 * RECORDS)
        self.assertEqual([s["id"] for s in summary["servers"]], ["s0", "s1", "s2"])
        self.assert_hosts_have_nothing_left(run_dir)

    def test_a_damaged_copy_on_a_servers_host_is_replaced_when_the_run_is_resumed(self):
        hosts = [self.add_host("hostb"), self.add_host("hostc")]
        job = self.job(hosts, records=4 * RECORDS)
        job.write_text(job.read_text().replace("[checkpoint]\n", "[checkpoint]\ncopies = 3\n"))
        process, run_dir = self.launch(job)
        self.await_training(run_dir, samples=RECORDS)
        stopped = self.antdt("stop", run_dir)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        process.communicate(timeout=60)
        newest = tally.newest(run_dir)
        for host in hosts:  # so that it does not matter on which of them s1 is started
            self.assertIn(newest.name, self.checkpoints_on(host, run_dir)[0])
            file = host.path(newest / "slice-05.rows")
            content = bytearray(file.read_bytes())
            content[100] ^= 1
            file.write_bytes(content)
        restored = len(self.events(run_dir, "restored"))
        summary = self.assert_trained(self.resume(run_dir), run_dir, 4 * RECORDS)
        [said] = self.events(run_dir, "checkpoint-damaged")
        self.assertRegex(said, f"servers cannot read the checkpoint {newest}: s1 on host[bc]: "
                               ".*slice-05.rows does not have the checksum .*"
                               "copies on other hosts are compared with it, and all try once more")
        self.assertEqual([f" from {newest} " in text
                          for text in self.events(run_dir, "restored")[restored:]], [True, True])
        self.assertEqual(summary["failures"], [])
        self.assert_hosts_have_nothing_left(run_dir)

    def test_a_replica_takes_over_and_another_one_is_made_where_nothing_is_shared(self):
        process, run_dir, before = self.three_hosts("ps-bsp", extra_roles="replicas = 2\n")
        before["s1"].die()
        summary = self.assert_trained(process, run_dir, 2 * RECORDS)
        self.assertEqual(summary["lineages"], 1, "its backup had all of it")


class InNamespacesOfTheirOwn(unittest.TestCase):
    def test_all_reduce(self):
        run_inside(self, __file__, "AllReduce")

    def test_parameter_servers(self):
        run_inside(self, __file__, "ParameterServers")


if __name__ == "__main__":
    unittest.main()
