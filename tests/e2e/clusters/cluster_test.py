"""Two agents as daemons of their own on 127.0.0.1, with CURVE."""

import os
import signal
import socket
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
import tally
from harness import ANTDT, BIN, needs_trainer
from hosts import Hosts, free_port

ROWS = 8000
RECORDS = 3000


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False



class Cluster(Hosts, tally.TallyTest):
    @needs_trainer
    def test_two_agents_run_the_job(self):
        keys = self.keys("keys")
        hosts = [self.agent(name, keys) for name in ("hosta", "hostb")]
        self.antdt("data", "synth", "criteo", "--rows", ROWS, "--seed", 5, "--out",
                   self.dir / "data")
        job = self.write("job.toml",
                         jobs.ctr(self.dir / "data" / "train.tsv", self.dir / "data" / "eval.tsv",
                                  workers=4, extra=self.cluster(hosts, keys)))
        run = self.run_job(job)
        self.assert_done(run)
        self.assert_once(run, 2, ROWS)
        self.assertEqual({w["host"] for w in run.summary["workers"]}, {"hosta", "hostb"})

    @needs_trainer
    @unittest.skipUnless(has_ipv6(), "this machine has no ::1")
    def test_agents_at_ipv6_addresses_run_jobs_of_every_kind(self):
        keys = self.keys("keys")
        hosts = [self.agent(name, keys, address="::1") for name in ("hosta", "hostb")]
        self.assertTrue(hosts[0].startswith("[::1]:"))
        for sync, servers in (("allreduce", ""), ("ps-bsp", "[roles.server]\ncount = 2\n")):
            with self.subTest(sync):
                text = tally.job(workers=2, records=RECORDS, epochs=1,
                                 extra=servers + self.cluster(hosts, keys))
                run = self.run_job(self.write(f"{sync}.toml", text.replace("allreduce", sync)))
                self.assert_done(run)
                self.assert_once(run, 1, RECORDS)
                self.assertEqual({w["host"] for w in run.summary["workers"]}, {"hosta", "hostb"})

    @needs_trainer
    def test_a_host_is_evicted_where_no_worker_runs_and_by_its_agents_end_point(self):
        keys = self.keys("keys")
        addresses = {name: self.agent(name, keys) for name in ("hosta", "hostb", "hostc")}
        text = tally.job(workers=2, records=100000, delay="10ms",
                         extra=self.cluster(addresses.values(), keys))
        process, run_dir = self.start_job(self.write("job.toml", text))
        status = self.await_training(run_dir, samples=500)
        on = {w["host"]: w["id"] for w in status["workers"]}
        idle = min(set(addresses) - set(on))
        said = f"{idle} gets no more workers of this job; none of them runs there\n"
        for _ in range(2):  # again changes nothing
            evicted = self.antdt("evict", run_dir, idle, timeout=60)
            self.assertEqual((evicted.returncode, evicted.stdout), (0, said), evicted.stderr)
        closed = {h["name"] for h in self.status(run_dir)["hosts"] if h["closed"]}
        self.assertEqual(closed, {idle})
        busy, worker = max(on.items())
        [pid] = [w["pid"] for w in status["workers"] if w["id"] == worker]
        os.kill(pid, signal.SIGSTOP)  # it takes a while to leave
        evict = ("evict", run_dir, addresses[busy], "--deadline", "60s")
        asked = self.antdt(*evict, "--no-wait", timeout=60)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        again = subprocess.Popen([ANTDT, *map(str, evict)], env=self.env, cwd=self.dir,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (again.poll() is None and again.kill(), again.communicate()))
        self.assertIn("waiting for", again.stderr.readline(), "the host is closed, and not yet left")
        os.kill(pid, signal.SIGCONT)
        out, err = again.communicate(timeout=60)
        self.assertEqual(again.returncode, 0, err)
        self.assertIn(f"{worker} has left {busy}", out)
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        process.communicate(timeout=60)

    def test_an_unknown_key_gets_nothing(self):
        host = self.agent("hosta", self.keys("keys"))
        strangers = self.keys("strangers")
        # The stranger knows the agent's public key, but is not authorised there.
        known = (self.dir / "keys" / "agents" / "cluster.pub").read_text()
        (strangers / "agents" / "cluster.pub").write_text(known)
        job = self.write("job.toml", EXEC + self.cluster([host], strangers))
        run = self.run_job(job, timeout=60)
        self.assertEqual(run.code, 3, run.explain())
        self.assertIn(host, run.out + run.err)
        self.assertFalse((self.dir / "touched").exists())

    def test_an_agent_that_is_not_there_is_named(self):
        keys = self.keys("keys")
        host = f"127.0.0.1:{free_port()}"
        job = self.write("job.toml", EXEC + self.cluster([host], keys))
        run = self.run_job(job, timeout=60)
        self.assertEqual(run.code, 3, run.explain())
        self.assertIn(host, run.out + run.err)
        self.assertIn("antdtd", run.out + run.err)

    def test_an_agent_does_not_listen_on_tcp_without_keys(self):
        process = subprocess.run(
            [str(BIN / "antdtd"), "--listen", f"127.0.0.1:{free_port()}", "--state-dir",
             str(self.dir / "s"), "--socket-dir", str(self.runtime / "x"), "--allow-root"],
            env=self.env, capture_output=True, text=True, timeout=20)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("antdt keygen", process.stderr + process.stdout)


EXEC = """
schema = 1
[job]
name = "touch"
[roles.worker]
count = 1
protocol = "exec"
command = ["touch", "touched"]
"""


if __name__ == "__main__":
    unittest.main()
