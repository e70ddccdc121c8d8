"""Kills processes of all kinds at random, and starts agents again as systemd does."""

import collections
import os
import random
import signal
import subprocess
import time

import tally
from harness import BIN, await_true, processes_of
from hosts import free_port

RECORDS = 200_000
EPOCHS = 2
KILLS = int(os.environ.get("ANTDT_KILLS", "60"))
SEED = int(os.environ.get("ANTDT_KILL_SEED", "0")) or random.randrange(1, 1 << 30)
# Long enough to outlast the kills. The test is about the job's accounts.
DELAY = os.environ.get("ANTDT_KILL_DELAY", "25ms")

FAILURE = """
[failure]
hang_after = "4s"
host_lost_after = "20s"
budgets = { program = 1000, oom = 1000, signal = 1000, hang = 1000, host = 1000, collective = 1000 }
[checkpoint]
every = "5s"
"""


class Agent:
    """An agent that is started again when it dies, as systemd does."""

    def __init__(self, test, name, keys):
        self.test, self.name, self.keys = test, name, keys
        self.port = free_port()
        self.process = None
        # It stands for a host, which has a directory of sockets of its own.
        sockets = test.runtime / f"{name}-user"
        sockets.mkdir(mode=0o700)
        self.env = dict(test.env, XDG_RUNTIME_DIR=str(sockets))
        self.start()

    @property
    def endpoint(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        log = open(self.test.dir / f"{self.name}.log", "a")
        self.process = subprocess.Popen(
            [str(BIN / "antdtd"), "--listen", self.endpoint, "--keys", str(self.keys),
             "--state-dir", str(self.test.dir / f"{self.name}-state"), "--host-name", self.name,
             "--socket-dir", str(self.test.runtime / self.name), "--address", "127.0.0.1",
             "--allow-root"],
            env=self.env, stdout=log, stderr=subprocess.STDOUT)
        log.close()

    def keep(self):
        if self.process.poll() is not None:
            self.start()

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


class Kills(tally.TallyTest):
    """Kills processes of all kinds in a job of two agents; a subclass names the workers'
    program."""

    records, kills = RECORDS, KILLS
    # how often each kind of fault is drawn
    weights = {"worker": 10, "stop": 2, "jobd": 3, "agent": 2, "private-agent": 1}

    def check_random_kills(self):
        """Returns the summary."""
        print(f"seed {SEED} (ANTDT_KILL_SEED), {self.kills} kills", flush=True)
        self.random = random.Random(SEED)
        keys = self.dir / "keys"
        self.assertEqual(self.antdt("keygen", "--dir", keys).returncode, 0)
        self.agents = [Agent(self, name, keys) for name in ("hosta", "hostb")]
        for agent in self.agents:
            self.addCleanup(agent.stop)
        hosts = ", ".join(f'"{a.endpoint}"' for a in self.agents)
        cluster = f'[cluster]\nhosts = [{hosts}]\nkeys = "{keys}"\n'
        process, run_dir = self.start_job(self.job_with(FAILURE + cluster))
        kills = self.kill_at_random(process, run_dir)
        while process.poll() is None:
            self.keep_agents()
            time.sleep(0.1)
        summary = self.finish(process, run_dir, timeout=300)
        print(f"{dict(kills)}; {summary['generations']} generations, {summary['lineages']} "
              f"lineages, {summary['incarnations']} incarnations, {len(summary['failures'])} "
              f"failures, {summary['wall_seconds']:.0f} s", flush=True)
        self.assert_exact(summary, run_dir, self.records, EPOCHS)
        for agent in self.agents:
            agent.stop()
        self.assert_nothing_left()
        return summary

    def keep_agents(self):
        for agent in self.agents:
            agent.keep()

    def kill_at_random(self, process, run_dir):
        """Causes `kills` faults; returns how many of each kind."""
        faults = self.random.choices(list(self.weights), self.weights.values(), k=self.kills)
        moments = self.moments(process, run_dir, self.random, self.kills,
                               self.records * EPOCHS, self.keep_agents)
        for kind, _ in zip(faults, moments):
            def struck(kind=kind):
                self.keep_agents()
                return self.strike(kind, run_dir)
            await_true(struck, 60, f"one to strike: {kind}")
        return collections.Counter(faults)

    def strike(self, kind, run_dir):
        if kind in ("worker", "stop"):
            found = [pid for pid, command in processes_of(str(self.dir))
                     if self.is_worker(command)]
            which = signal.SIGSTOP if kind == "stop" else signal.SIGKILL
            return bool(found) and self.kill(self.random.choice(found), which)
        if kind == "agent":
            agent = self.random.choice(self.agents)
            return agent.process.poll() is None and self.kill(agent.process.pid)
        if kind == "private-agent":
            found = [pid for pid, command in processes_of(str(self.dir))
                     if "antdtd" in command.split(" ", 1)[0] and "--private" in command]
            return bool(found) and self.kill(found[0])
        pid = self.jobd_pid(run_dir)
        return pid > 0 and self.kill(pid)
