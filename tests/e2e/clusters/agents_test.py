"""Agents are killed in the middle of training, alone and together with their processes. The job
goes on with the same processes, and nothing is left afterwards."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from hosts import free_port
from harness import BIN, EndToEnd, await_true, needs_trainer, processes_of

ROWS = 20000
EPOCHS = 3
# Slow enough that the kills fall into training.
SLOW = '[[inject]]\nworkers = ["*"]\ndelay_per_sample = "200us"\n'


def lock_owner(path):
    """The pid in a lock file whose owner lives, or None."""
    try:
        pid = int(path.read_text())
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, ValueError, IndexError):
        return None
    return pid if state != "Z" else None


class AgentsCase(EndToEnd):
    def slow_job(self, extra=""):
        self.antdt("data", "synth", "criteo", "--rows", ROWS, "--seed", 5, "--out",
                   self.dir / "data")
        return self.write("job.toml", jobs.ctr(
            self.dir / "data" / "train.tsv", self.dir / "data" / "eval.tsv", workers=2,
            epochs=EPOCHS, extra=SLOW + extra))

    def private_agent(self):
        """The pid of the private agent, or None while there is none."""
        for lock in self.runtime.glob("antdt/*/state/lock"):
            if (pid := lock_owner(lock)) is not None:
                return pid
        return None

    def status(self, run_dir):
        answer = self.antdt("status", run_dir, "--json")
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def await_progress(self, process, run_dir, beyond=0):
        """The status once more than `beyond` samples are trained."""
        def look():
            self.assertIsNone(process.poll(), "the job has ended: the test came too late")
            status = self.status(run_dir)
            return status if status and status["samples_done"] > beyond else None
        return await_true(look, 60, f"more than {beyond} samples trained")

    def assert_ended_well(self, process, run_dir, pids, incarnations):
        out, err = process.communicate(timeout=180)
        logs = "\n".join(p.read_text() for p in run_dir.glob("*.log"))
        self.assertEqual(process.returncode, 0, out + err + logs)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual({w["id"]: w["pid"] for w in summary["workers"]}, pids,
                         "no worker was restarted")
        self.assertEqual(summary["incarnations"], incarnations)
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout)
        epochs = json.loads(audit.stdout)["epochs"]
        self.assertEqual([e["once"] for e in epochs], [ROWS] * EPOCHS)
        self.assertEqual([(e["repeated"], e["lost"]) for e in epochs], [(0, 0)] * EPOCHS)


class PrivateAgents(AgentsCase):
    @needs_trainer
    def test_a_private_agent_that_is_killed_again_and_again_comes_back(self):
        process, run_dir = self.start_job(self.slow_job())
        status = self.await_progress(process, run_dir)
        pids = {w["id"]: w["pid"] for w in status["workers"]}
        for _ in range(4):
            agent = await_true(self.private_agent, 30, "an agent")
            os.kill(agent, signal.SIGKILL)
            await_true(lambda killed=agent: self.private_agent() not in (None, killed), 30,
                       "another agent")
            status = self.await_progress(process, run_dir, status["samples_done"])
        self.assert_ended_well(process, run_dir, pids, incarnations=1)
        self.assert_nothing_left()

    @needs_trainer
    def test_an_eviction_that_meets_a_dying_agent_is_heard_through_the_next_one(self):
        process, run_dir = self.start_job(self.slow_job())
        self.await_progress(process, run_dir)
        os.kill(await_true(self.private_agent, 30, "an agent"), signal.SIGKILL)
        evicted = self.antdt("evict", run_dir, "w1", "--deadline", "60s")
        self.assertEqual(evicted.returncode, 0, evicted.stderr)
        self.assertIn("w1 has left", evicted.stdout)
        events = [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]
        ends = [e["text"] for e in events if e["kind"] == "worker-exited"]
        self.assertEqual([text.split(" on ")[0] for text in ends], ["w1"])
        self.assertIn("exited with code 75", ends[0])
        self.kill_all()
        process.communicate(timeout=60)

    @needs_trainer
    def test_an_agent_and_its_job_daemon_killed_together_come_back(self):
        process, run_dir = self.start_job(self.slow_job())
        status = self.await_progress(process, run_dir)
        pids = {w["id"]: w["pid"] for w in status["workers"]}
        # In both orders: the one that dies second has no time to react.
        for order in (("agent", "daemon"), ("daemon", "agent")):
            agent = await_true(self.private_agent, 30, "an agent")
            victims = {"agent": agent, "daemon": lock_owner(run_dir / "jobd.lock")}
            for name in order:
                os.kill(victims[name], signal.SIGKILL)
            status = self.await_progress(process, run_dir, status["samples_done"])
        self.assert_ended_well(process, run_dir, pids, incarnations=3)
        self.assert_nothing_left()

    @needs_trainer
    def test_an_agent_that_is_stopped_is_replaced(self):
        process, run_dir = self.start_job(self.slow_job())
        status = self.await_progress(process, run_dir)
        pids = {w["id"]: w["pid"] for w in status["workers"]}
        agent = await_true(self.private_agent, 30, "an agent")
        os.kill(agent, signal.SIGSTOP)
        await_true(lambda: self.private_agent() not in (None, agent), 60, "another agent")
        self.await_progress(process, run_dir, status["samples_done"])
        self.assert_ended_well(process, run_dir, pids, incarnations=1)
        self.assert_nothing_left()

    @needs_trainer
    def test_a_job_of_which_only_the_shims_are_left_ends_and_leaves_nothing(self):
        process, run_dir = self.start_job(self.slow_job())
        self.await_progress(process, run_dir)
        for pid, command in processes_of(str(self.runtime)):
            if "antdt-shim" not in command.split()[0] and pid != process.pid:
                os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=180)
        self.assert_nothing_left()

    def test_leftovers_of_a_run_killed_as_a_whole_are_removed_by_the_next(self):
        job = self.write("job.toml", SLEEP)
        process, run_dir = self.start_job(job)
        await_true(lambda: (run_dir / "logs" / "w0.1.out").exists(), 30, "the worker runs")
        self.kill_all()
        process.communicate(timeout=60)
        left = [p for p in self.runtime.rglob("*") if p.is_socket()]
        self.assertNotEqual(left, [], "nobody was there to remove them")
        for path in self.runtime.rglob("*"):
            os.utime(path, (0, 0), follow_symlinks=False)  # long ago: surely dead
        run = self.run_job(self.write("quick.toml", SLEEP.replace("sleep 1000", "true")))
        self.assert_done(run)
        self.assert_nothing_left()


class SystemAgents(AgentsCase):
    """Agents as daemons, which this test starts again."""

    def keys(self):
        made = self.antdt("keygen", "--dir", self.dir / "keys")
        self.assertEqual(made.returncode, 0, made.stderr)
        return self.dir / "keys"

    def start_agent(self, name, port):
        log = open(self.dir / f"{name}.log", "a")
        process = subprocess.Popen(
            [str(BIN / "antdtd"), "--listen", f"127.0.0.1:{port}", "--keys",
             str(self.dir / "keys"), "--state-dir", str(self.dir / f"{name}-state"),
             "--host-name", name, "--socket-dir", str(self.runtime / name), "--address",
             "127.0.0.1", "--allow-root"], env=self.env, stdout=log, stderr=subprocess.STDOUT)
        log.close()
        self.addCleanup(lambda: (process.poll() is None and process.terminate(),
                                 process.wait(10)))
        return process

    def test_the_exit_code_says_whether_a_later_start_may_succeed(self):
        """The unit of systemd does not start an agent again that ends with 2."""
        port = free_port()
        keys = self.dir / "keys"

        def code_of(*flags):
            return subprocess.run([BIN / "antdtd", "--state-dir", self.dir / "state", "--socket-dir",
                                   self.runtime / "s", *flags], env=self.env, capture_output=True,
                                  timeout=60).returncode
        self.assertEqual(code_of(), 2, "as before it is configured")
        flags = ("--listen", f"127.0.0.1:{port}", "--keys", keys)
        self.assertEqual(code_of(*flags), 2, "there are no keys")
        (self.keys() / "agent.key").rename(keys / "away")
        self.assertEqual(code_of(*flags), 2, "there is no key of the agent")
        (keys / "agent.key").symlink_to("away")
        (keys / "away").chmod(0o644)
        self.assertEqual(code_of(*flags), 2, "others may read the key")
        (keys / "away").chmod(0o600)
        with socket.create_server(("127.0.0.1", port)):
            self.assertEqual(code_of(*flags), 3, "the port is taken")

    @needs_trainer
    def test_a_cluster_agent_killed_while_training_is_taken_over_by_the_next(self):
        keys = self.keys()
        ports = {name: free_port() for name in ("hosta", "hostb")}
        agents = {name: self.start_agent(name, port) for name, port in ports.items()}
        hosts = ", ".join(f'"127.0.0.1:{port}"' for port in ports.values())
        process, run_dir = self.start_job(
            self.slow_job(f'[cluster]\nhosts = [{hosts}]\nkeys = "{keys}"\n'))
        status = self.await_progress(process, run_dir)
        pids = {w["id"]: w["pid"] for w in status["workers"]}
        for name in ("hosta", "hostb", "hosta"):
            agents[name].kill()
            agents[name].wait(10)
            agents[name] = self.start_agent(name, ports[name])
            status = self.await_progress(process, run_dir, status["samples_done"])
        self.assert_ended_well(process, run_dir, pids, incarnations=1)
        for agent in agents.values():
            agent.terminate()
            agent.wait(10)
        self.assert_nothing_left()

    def train_on_two_hosts(self):
        """(ports by host, agents, process, run directory) of a job that makes progress."""
        keys = self.keys()
        ports = {name: free_port() for name in ("hosta", "hostb")}
        agents = [self.start_agent(name, port) for name, port in ports.items()]
        hosts = ", ".join(f'"127.0.0.1:{port}"' for port in ports.values())
        process, run_dir = self.start_job(
            self.slow_job(f'[cluster]\nhosts = [{hosts}]\nkeys = "{keys}"\n'))
        self.await_progress(process, run_dir)
        return ports, agents, process, run_dir

    @needs_trainer
    def test_a_run_is_resumed_once_an_agent_of_it_answers(self):
        ports, agents, process, run_dir = self.train_on_two_hosts()
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        process.communicate(timeout=120)
        for agent in agents:
            agent.terminate()
            agent.wait(10)
        refused = self.antdt("run", "--resume", run_dir)
        self.assertEqual(refused.returncode, 3, refused.stdout + refused.stderr)
        self.assertIn("no answer within 3 s from", refused.stderr)
        self.assertIn("says whether antdtd, the keys or a firewall is the reason", refused.stderr)
        self.assertTrue((run_dir / "summary.json").exists(), "nothing was changed")
        agent = self.start_agent("hosta", ports["hosta"])
        resumed = self.antdt("run", "--resume", run_dir)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assertIn(f"no answer from 127.0.0.1:{ports['hostb']}: the job goes on without",
                      resumed.stderr)
        agent.terminate()
        agent.wait(10)
        self.assert_nothing_left()

    @needs_trainer
    def test_an_evicted_host_that_is_away_is_not_said_to_be_used_again(self):
        ports, agents, process, run_dir = self.train_on_two_hosts()
        self.assertEqual(self.antdt("evict", run_dir, "hostb").returncode, 0)
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        process.communicate(timeout=120)
        agents[1].terminate()
        agents[1].wait(10)
        resumed = self.antdt("run", "--resume", run_dir, "--detach")
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assertIn(f"no answer from 127.0.0.1:{ports['hostb']}: the job goes on without these "
                      "hosts, and does not use them again, because they were evicted", resumed.stderr)
        self.assertNotIn("as soon as antdtd runs there", resumed.stderr)
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)


SLEEP = """
schema = 1
[job]
name = "sleep"
[roles.worker]
count = 1
protocol = "exec"
command = ["sh", "-c", "echo up; sleep 1000"]
"""


if __name__ == "__main__":
    unittest.main()
