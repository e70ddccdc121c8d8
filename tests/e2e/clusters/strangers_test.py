"""A stranger on the workers' network, who knows only what `ps` shows of a job, dials its
workers."""

import os
import select
import signal
import socket
import struct
import threading
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import needs_trainer, stat_of
from hosts import free_port

MASK = (1 << 64) - 1
PORTS = 12


def mix64(x):
    x = (x + 0x9e3779b97f4a7c15) & MASK
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & MASK
    return x ^ (x >> 31)


def combine(seed, part):
    return mix64(seed ^ mix64(part))


class Stranger(threading.Thread):
    """Claims to be each of the other ranks, towards every listener, as fast as possible."""

    EARLIER, NOW = b"DTcoll1\0", b"DTcoll2\0"
    WELCOME = b"welcome"  # the other end sends this to a peer that it takes for a member

    def __init__(self, ports, job, seed, size):
        super().__init__(daemon=True)
        self.ports, self.size = ports, size
        key = seed
        for letter in job.encode():
            key = combine(key, letter)
        # The proof of an earlier release in lineage 1, by generation.
        self.keys = [combine(combine(key, 1), generation) for generation in range(1, 6)]
        self.welcomed, self.received, self.answers, self.connected = [], 0, 0, 0
        self.over = threading.Event()
        self.open = {}  # bytes that were sent, by connection

    def hellos(self):
        yield b""  # and nothing more
        for to in range(1, self.size):
            for sender in range(to):
                yield self.NOW + struct.pack("=IIII", self.size, sender, to, 0) + os.urandom(64)
                for key in self.keys:
                    yield self.EARLIER + struct.pack("=QIIII", key, self.size, sender, to, 0)

    def run(self):
        hellos = list(self.hellos())
        while not self.over.is_set():
            for port in self.ports:
                for hello in hellos:
                    if not self.dial(port, hello):
                        break  # nobody listens
            self.listen()
        for s in self.open:
            s.close()

    def dial(self, port, hello):
        s = socket.socket()
        try:
            s.connect(("127.0.0.1", port))
            s.sendall(hello)
        except OSError:
            s.close()
            return False
        self.connected += 1
        self.open[s] = (port, hello)
        while len(self.open) > 500:
            oldest = next(iter(self.open))
            self.open.pop(oldest)
            oldest.close()
        return True

    def listen(self):
        for s in select.select(list(self.open), [], [], 0)[0]:
            port, hello = self.open[s]
            try:
                answer = s.recv(1 << 16)
            except OSError:
                answer = b""
            if hello is self.WELCOME:
                self.received += len(answer)  # from the job
                if answer:
                    continue
            at = 28 if hello.startswith(self.EARLIER) else 8
            if len(answer) >= at + 4:
                self.answers += 1
                if struct.unpack_from("=I", answer, at)[0] != 0:
                    self.welcomed.append((port, hello[:32].hex()))
                    self.open[s] = (port, self.WELCOME)
                    continue
            del self.open[s]
            s.close()


class Strangers(tally.TallyTest):
    def job(self, extra=""):
        first = free_port()
        while first + PORTS > 65535:
            first = free_port()
        self.ports = range(first, first + PORTS)
        # Over tcp there is something to dial; within a host "auto" would share memory.
        cluster = f'collective = "tcp"\n[cluster]\nports = "{first}-{first + PORTS - 1}"\n{extra}'
        return self.write("job.toml", tally.job(workers=3, records=6000, epochs=2, delay="20ms",
                                                extra=cluster))

    def kill_a_worker(self, status, name):
        worker = next(w for w in status["workers"] if w["id"] == name)
        began = stat_of(worker["pid"])[19:20]
        self.assertTrue(began)
        os.kill(worker["pid"], signal.SIGKILL)

    @needs_trainer
    def test_a_stranger_with_seed_and_job_id_gets_nothing_and_the_group_forms(self):
        process, run_dir = self.start_job(self.job())
        status = self.await_status(run_dir, lambda s: s["job"], 30, "the job runs")
        stranger = Stranger(self.ports, status["job"], 11, 3)
        stranger.start()
        try:
            # The group forms and heals again. Members listen for milliseconds only: on a busy machine the
            # stranger meets them after more than two losses.
            for name in ("w1", "w0", "w2") * 2:
                if stranger.answers > 0 and stranger.connected > 20 and name == "w2":
                    break
                status = self.await_training(run_dir, samples=status["samples_done"] + 500)
                self.kill_a_worker(status, name)
                generation = status["generation"]
                status = self.await_status(
                    run_dir, lambda s, g=generation: s["generation"] > g and s["state"] == "training",
                    60, "the group forms again")
            out, err = process.communicate(timeout=120)
        finally:
            stranger.over.set()
            stranger.join(20)
        self.assertGreater(stranger.connected, 20, "it never met anybody")
        self.assertGreater(stranger.answers, 0, "and nobody told it no")
        self.assertEqual((stranger.welcomed, stranger.received), ([], 0))
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(set(tally.counts(run_dir)), {2.0}, "each record, once an epoch")
        self.assert_nothing_left()

    @needs_trainer
    def test_the_secret_is_nowhere_and_an_encrypted_group_heals(self):
        process, run_dir = self.start_job(self.job("encrypt = true\n"))
        status = self.await_training(run_dir, samples=500)
        self.kill_a_worker(status, "w1")
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(set(tally.counts(run_dir)), {2.0}, "each record, once an epoch")
        # Members receive the secret in a message, and it is in no file of the run.
        for path in run_dir.rglob("*"):
            if path.is_file():
                self.assertNotIn(b"secret", path.read_bytes(), path)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
