"""The launching host loses its power in the middle of training: a job daemon that stood by on another
host goes on with the job, whose journal is in an etcd of three members, one of them on the host that is
lost. The hosts share nothing; see separate_hosts.py."""

import json
import os
import pathlib
import subprocess
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from etcd import Certificates, Etcd, needs_etcd
from harness import ANTDT, await_true, needs_trainer, processes_of
from separate_hosts import INSIDE, LAUNCHER, SeparateHosts, run_inside

RECORDS, EPOCHS = 40000, 2
EXTRA = """
[failure]
host_lost_after = "10s"
[checkpoint]
every = "2s"
"""


@needs_etcd
@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class LostLauncher(SeparateHosts):
    def setUp(self):
        super().setUp()
        self.b, self.c = self.add_host("hostb"), self.add_host("hostc")
        certificates = Certificates(self.dir / "certificates",
                                    [LAUNCHER, self.b.address, self.c.address])
        self.etcd = Etcd(self.dir / "etcd", certificates=certificates,
                         places=[(LAUNCHER, []), (self.b.address, self.b.enter()),
                                 (self.c.address, self.c.enter())])
        self.addCleanup(self.etcd.stop)

    def cluster_with_store(self):
        return (self.cluster(self.b, self.c) +
                f'store = "{self.etcd.url}"\nstore_ca = "{self.etcd.certificates.ca}"\n'
                f'store_cert = "{self.etcd.client_certificate}"\nstore_key = "{self.etcd.client_key}"\n')

    def job(self, workers=2, delay="20ms"):
        # The launching host's address, at which no other host can serve metrics.
        metrics = f'[metrics]\nlisten = "{LAUNCHER}:9400"\n'
        text = tally.job(workers=workers, records=RECORDS, epochs=EPOCHS, delay=delay,
                         extra=self.cluster_with_store() + EXTRA + metrics)
        return self.write("job.toml", text.replace(
            'command = ["antdt-trainer"]',
            'command = ["antdt-trainer"]\nresources = { cpus = 1 }'))

    def processes_of_launcher(self):
        """The launching host's processes of the job."""
        others = {pid for host in self.hosts.values() for pid in host.processes()}
        return [pid for pid, command in processes_of(str(self.runs))
                if pid not in others and "/bin/antdt" in command]

    def power_off(self, process):
        self.cut_launcher()
        self.etcd.kill(0)
        def none_left():
            for pid in self.processes_of_launcher():
                self.kill(pid)
            return not self.processes_of_launcher()
        await_true(none_left, 20, "the launching host is dead")
        process.wait(10)

    def ask(self, host, *args):
        """A command of antdt on another host."""
        done = subprocess.run([*host.enter(), ANTDT, *map(str, args)], env=host.env, cwd=self.dir,
                              capture_output=True, text=True, timeout=60)
        return done

    def status_on(self, host, run_dir):
        done = self.ask(host, "status", run_dir, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def await_standbys(self, run_dir, count):
        await_true(lambda: sum("stands by" in e for e in self.events(run_dir, "standby")) >= count, 30,
                   f"{count} job daemons stand by")

    def await_successor(self, run_dir):
        """(host, status) of the job daemon that goes on with the job, which is there alone."""
        def successor():
            for host in self.hosts.values():
                if not host.path(run_dir / "control.json").exists():
                    continue
                status = self.status_on(host, run_dir)
                if status and status["incarnation"] == 2:
                    return host, status
            return None
        try:
            return await_true(successor, 30, "a job daemon answers")
        except AssertionError as error:
            raise AssertionError(f"{error}\n" + "\n".join(map(self.logs_of, self.hosts.values()))) from error

    def logs_of(self, host):
        """What the job daemons on that host said last."""
        directory = host.path(self.runs)
        said = [f"--- {host.name} has {sorted(map(str, directory.glob('*/*')))}"]
        for log in sorted([*directory.glob("*/jobd.j*.log"), *directory.glob("*/logs/j*.err")]):
            said.append(f"--- {host.name}: {log.name}\n{log.read_text()[-3000:]}")
        return "\n".join(said)

    def assert_ends_exactly(self, host, run_dir, generations=1):
        """The job ends on that host, and each record has entered the model once an epoch."""
        def ended():
            path = host.path(run_dir / "summary.json")
            return json.loads(path.read_text()) if path.exists() else None
        summary = await_true(ended, 180, "the job ends")
        self.assertEqual(summary["state"], "done")
        self.assertEqual((summary["incarnations"], summary["generations"], summary["lineages"]),
                         (2, generations, 1))
        found = tally.counts(host.path(run_dir))
        self.assertEqual({i: c for i, c in enumerate(found) if c != EPOCHS}, {})
        audit = self.ask(host, "data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        await_true(lambda: all(set(h.processes()) <= {h.agent.pid} for h in self.hosts.values()), 60,
                   "nothing is left of the job")

    def test_a_launching_host_that_was_cut_off_is_told_where_its_job_is(self):
        process, run_dir = self.launch(self.job())
        self.await_training(run_dir, samples=RECORDS // 10)
        self.await_standbys(run_dir, 2)
        self.cut_launcher()
        host, _ = self.await_successor(run_dir)
        self.join_launcher()
        await_true(lambda: (self.status(run_dir) or {}).get("incarnation") == 2, 20,
                   "the launching host shows the job's status, through an agent")
        refused = self.antdt("run", "--resume", run_dir)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("goes on elsewhere: the job daemon on host ", refused.stderr)
        explained = self.antdt("explain", run_dir)
        self.assertEqual(explained.returncode, 0, explained.stderr)
        watcher = self.attached_through(self.b, run_dir)
        self.assert_operated_through_any_agent(run_dir)
        out, err = process.communicate(timeout=180)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertIn("the job goes on elsewhere", out)
        self.assert_ends_exactly(host, run_dir, generations=3)  # w1 has left, and is back
        seen, why = watcher.communicate(timeout=60)
        self.assertIn("epoch 2", seen)
        self.assertEqual(watcher.returncode, 3, why)
        self.assertIn("does not have job", why)
        ended = self.antdt("status", run_dir)
        self.assertIn("done", ended.stdout, "the summary came from etcd")

    def attached_through(self, host, run_dir):
        """A user on that host watches the job, whose id and agent are all that is known there."""
        job = json.loads(self.antdt("status", run_dir, "--json").stdout)["job"]
        watcher = subprocess.Popen(
            [*host.enter(), ANTDT, "attach", job, "--agent", host.endpoint, "--keys", self.dir / "keys"],
            env=host.env, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (watcher.poll() is None and watcher.kill(), watcher.communicate()))
        return watcher

    def assert_operated_through_any_agent(self, run_dir):
        """Requests by the job's id alone, from hosts without the run's files, reach the daemon."""
        job = self.antdt("status", run_dir, "--json")
        job = json.loads(job.stdout)["job"]
        for host in self.hosts.values():
            through = ["--agent", host.endpoint, "--keys", self.dir / "keys"]
            asked = self.ask(host, "status", job, "--json", *through)
            self.assertEqual(asked.returncode, 0, asked.stderr)
            self.assertEqual(json.loads(asked.stdout)["incarnation"], 2)
        evicted = self.antdt("evict", run_dir, "w1", "--reason", "a test")
        self.assertEqual(evicted.returncode, 0, evicted.stderr)
        self.assertIn("w1 has left", evicted.stdout)

    def test_a_stop_waits_for_the_end_of_the_job_that_another_host_goes_on_with(self):
        go = self.dir / "go"
        process, run_dir = self.launch(self.stubborn_job(go), "--detach")
        self.assertEqual(process.wait(60), 0)
        self.await_status(run_dir, lambda s: s["state"] == "training", 60, "the workers run")
        self.await_standbys(run_dir, 2)
        stop = subprocess.Popen([ANTDT, "stop", str(run_dir)], env=self.env, cwd=self.dir,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (stop.poll() is None and stop.kill(), stop.communicate()))
        await_true(lambda: self.events(run_dir, "stopping"), 30, "the job daemon has the order")

        def none_left():
            found = [pid for pid in self.processes_of_launcher() if pid != stop.pid]
            for pid in found:
                self.kill(pid)
            return not found
        await_true(none_left, 20, "the job's processes on the launching host are dead")
        host, _ = self.await_successor(run_dir)
        await_true(lambda: stop.poll() is not None or speaks_with_agent(stop.pid), 60,
                   "the command asks the job daemon that took over")
        go.write_text("")
        out, err = stop.communicate(timeout=120)
        self.assertEqual(stop.returncode, 0, out + err + self.logs_of(host))
        self.assertIn(f"stopped: {run_dir}", out)
        self.assertEqual(json.loads((run_dir / "summary.json").read_text())["incarnations"], 2)

    def stubborn_job(self, go):
        """Its workers stay until that file is there, whoever asks them to leave."""
        program = f'trap "" TERM; until [ -e {go} ]; do sleep 0.1; done'
        return self.write("stubborn.toml", f"""
schema = 1
[job]
name = "stubborn"
[roles.worker]
count = 2
protocol = "exec"
command = ["sh", "-c", {json.dumps(program)}]
resources = {{ cpus = 1 }}
[failure]
stop_grace = "120s"
{self.cluster_with_store()}""")

    def test_training_goes_on_from_another_host(self):
        process, run_dir = self.launch(self.job())
        self.await_training(run_dir, samples=RECORDS // 10)
        self.await_standbys(run_dir, 2)
        before = self.status(run_dir)
        begun = time.monotonic()
        self.power_off(process)
        host, status = self.await_successor(run_dir)
        print(f"a job daemon on {host.name} answered {time.monotonic() - begun:.1f} s after the power "
              "was cut", flush=True)
        self.assertEqual({w["pid"] for w in status["workers"]}, {w["pid"] for w in before["workers"]},
                         "survivors keep computing")
        self.assert_ends_exactly(host, run_dir)

        # The launching host is back: it knows that the job is done.
        self.join_launcher()
        self.etcd.start(0)
        self.etcd.await_healthy()
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        ended = self.antdt("attach", run_dir)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(json.loads((run_dir / "summary.json").read_text())["incarnations"], 2,
                         "\n".join(map(self.logs_of, self.hosts.values())))


def speaks_with_agent(pid):
    """Whether the process has a connection to the port of a host's agent."""
    process, own = pathlib.Path(f"/proc/{pid}"), set()
    for descriptor in (process / "fd").glob("*"):
        try:
            own.add(os.readlink(descriptor))
        except OSError:
            pass  # it was closed meanwhile
    rows = [line.split() for line in (process / "net" / "tcp").read_text().splitlines()[1:]]
    return any(row[2].endswith(f":{7700:04X}") and f"socket:[{row[9]}]" in own for row in rows)


class InNamespaces(unittest.TestCase):
    def test_the_launching_host_may_be_lost(self):
        run_inside(self, __file__, "LostLauncher")


if __name__ == "__main__":
    unittest.main()
