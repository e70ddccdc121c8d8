"""Parameter servers and workers under two agents, as on two hosts: they use tcp, and accept only
the processes that the job daemon names."""

import os
import pathlib
import random
import socket
import unittest

import shared  # noqa: F401 (finds what follows)
import server_jobs
from harness import BUILT_IN, needs_trainer
from hosts import Hosts
from server_jobs import BUDGETS, job

KILLS = int(os.environ.get("ANTDT_KILLS", "5"))
SEED = int(os.environ.get("ANTDT_KILL_SEED", "0")) or random.randrange(1, 1 << 30)
RECORDS = 20000


def listening(pid):
    """The (address, port) pairs at which a process listens."""
    sockets = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except OSError:
            continue
        if target.startswith("socket:["):
            sockets.add(target[8:-1])
    found = []
    for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in sockets:
            address, port = fields[1].split(":")
            found.append((socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)))
    return found


@needs_trainer
class ServersOfSeveralHosts(server_jobs.ServersTest, Hosts):
    def setUp(self):
        super().setUp()
        self.cluster_keys = self.keys("keys")
        self.hosts = [self.agent(name, self.cluster_keys) for name in ("hosta", "hostb")]

    def two_hosts(self, ports=""):
        return self.cluster(self.hosts, self.cluster_keys) + ports

    def job(self, **options):
        extra = options.pop("extra", "") + self.two_hosts(options.pop("ports", ""))
        return self.write("job.toml", job(workers=2, records=RECORDS, extra=extra, **options))

    def test_a_record_is_in_the_model_once_an_epoch(self):
        for sync in ("ps-bsp", "ps-asp"):
            with self.subTest(sync):
                run = self.run_job(self.job(sync=sync))
                self.assert_done(run)
                self.assert_exact_on_servers(run.summary, run.dir, RECORDS, 2)
                for role in ("servers", "workers"):
                    self.assertEqual({p["host"] for p in run.summary[role]}, {"hosta", "hostb"})

    def test_a_stranger_gets_nothing_from_a_server(self):
        # The job runs as long as the test needs; it is stopped in the end.
        process, run_dir = self.start_job(self.job(epochs=100000,
                                                   ports='ports = "29400-29999"\n'))
        self.await_training(run_dir, samples=500)
        servers = self.pids("antdt-server")
        self.assertEqual(len(servers), 2)
        for pid in servers:
            (address, port), = listening(pid)
            self.assertEqual(address, "127.0.0.1")
            self.assertIn(port, range(29400, 30000))
            self.assert_closed_to_plain_text(address, port)
        # The keys of the cluster open its agents, and no server of a job.
        stranger = self.antdt("run", self.write("stranger.toml", STRANGER + self.cluster(
            [f"{address}:{port}"], self.cluster_keys)), timeout=60)
        self.assertEqual(stranger.returncode, 3, stranger.stdout + stranger.stderr)
        self.assertEqual(self.pids("antdt-server"), servers, "nothing happened to them")
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, self.why(out, err, run_dir))

    def assert_closed_to_plain_text(self, address, port):
        """A client without keys receives the server's greeting, and is then disconnected."""
        greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
        ready = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
        with socket.create_connection((address, port), timeout=30) as client:
            client.sendall(greeting + ready)
            heard = b""
            try:
                while part := client.recv(4096):
                    heard += part
            except ConnectionResetError:
                pass
        self.assertLessEqual(len(heard), 64, heard)
        self.assertNotIn(b"READY", heard)

    def test_random_kills_lose_nothing_where_all_wait_for_each_step(self):
        self.check_kills("ps-bsp")

    def test_random_kills_lose_nothing_without_a_barrier(self):
        self.check_kills("ps-asp")

    def check_kills(self, sync):
        """Kills workers, servers and the job daemon at random."""
        print(f"{sync}: seed {SEED} (ANTDT_KILL_SEED), {KILLS} kills", flush=True)
        rng = random.Random(SEED)
        process, run_dir = self.start_job(self.job(sync=sync, delay="25ms", extra=BUDGETS))
        # At least one of each kind is killed.
        programs = ["antdt-server", BUILT_IN]
        programs += rng.choices([BUILT_IN, "antdt-server", "antdt-jobd"], [4, 3, 2],
                                k=KILLS - len(programs))
        for program, _ in zip(programs, self.moments(process, run_dir, rng, KILLS, 2 * RECORDS)):
            self.kill_one_of(program, rng)
        summary = self.finish(process, run_dir, timeout=400)
        print(f"{programs}; {summary['generations']} generations, {summary['lineages']} lineages, "
              f"{summary['incarnations']} incarnations, {summary['wall_seconds']:.0f} s", flush=True)
        self.assertGreaterEqual(summary["lineages"], 2)
        self.assert_exact_on_servers(summary, run_dir, RECORDS, 2)


STRANGER = """
schema = 1
[job]
name = "stranger"
[roles.worker]
count = 1
protocol = "exec"
command = ["true"]
"""


if __name__ == "__main__":
    unittest.main()
