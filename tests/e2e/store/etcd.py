"""A real etcd cluster on 127.0.0.1, or on the hosts of a test, in a directory of the test's."""

import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from harness import await_true
from hosts import free_port

IS_THERE = shutil.which("etcd") and shutil.which("etcdctl")


def needs_etcd(test):
    return unittest.skipUnless(IS_THERE, "needs etcd (apt install etcd-server etcd-client)")(test)


def run(*command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


class Certificates:
    """An authority of its own, and certificates for these addresses that it signed."""

    def __init__(self, directory, addresses=("127.0.0.1",)):
        self.names = ",".join(f"IP:{address}" for address in addresses)
        self.directory = pathlib.Path(directory)
        self.directory.mkdir()
        self.ca, self.ca_key = self.directory / "ca.pem", self.directory / "ca.key"
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test",
            "-keyout", self.ca_key, "-out", self.ca)

    def make(self, name):
        """(certificate, key)."""
        certificate, key = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        request, about = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        # etcd's gateway refuses clients whose certificates have a common name once users are on.
        run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/O={name}", "-keyout", key,
            "-out", request)
        about.write_text(f"subjectAltName={self.names}\nextendedKeyUsage=serverAuth,clientAuth\n")
        run("openssl", "x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.ca_key,
            "-CAcreateserial", "-days", "2", "-extfile", about, "-out", certificate)
        return certificate, key


class Etcd:
    """`places`: the address of each member and the command that enters its host."""

    def __init__(self, directory, members=3, certificates=None, places=()):
        self.directory, self.certificates = pathlib.Path(directory), certificates
        self.directory.mkdir()
        scheme = "https" if certificates else "http"
        places = places or [("127.0.0.1", [])] * members
        self.clients = [f"{address}:{free_port()}" for address, _ in places]
        self.peers = [f"{address}:{free_port()}" for address, _ in places]
        cluster = ",".join(f"m{i}=http://{peer}" for i, peer in enumerate(self.peers))
        tls = []
        if certificates:
            certificate, key = certificates.make("server")
            tls = ["--cert-file", certificate, "--key-file", key, "--client-cert-auth",
                   "--trusted-ca-file", certificates.ca]
            self.client_certificate, self.client_key = certificates.make("client")
        self.commands = [
            [*enter, "etcd", "--name", f"m{i}", "--data-dir", self.directory / f"m{i}",
             "--listen-client-urls", f"{scheme}://{client}",
             "--advertise-client-urls", f"{scheme}://{client}",
             "--listen-peer-urls", f"http://{peer}", "--initial-advertise-peer-urls", f"http://{peer}",
             "--initial-cluster", cluster, "--logger", "zap", *tls]
            for i, (client, peer, (_, enter)) in enumerate(zip(self.clients, self.peers, places))]
        self.processes = [None] * len(places)
        for member in range(len(places)):
            self.start(member)
        self.await_healthy()

    @property
    def url(self):
        return "etcd://" + ",".join(self.clients)

    def start(self, member):
        with open(self.directory / f"m{member}.log", "a") as log:
            self.processes[member] = subprocess.Popen(
                list(map(str, self.commands[member])), stdout=log, stderr=subprocess.STDOUT,
                env={"PATH": os.environ["PATH"], "GOMAXPROCS": "1"})

    def ctl(self, *args, user="", check=True):
        scheme = "https" if self.certificates else "http"
        command = ["etcdctl", "--endpoints", ",".join(f"{scheme}://{c}" for c in self.clients)]
        if self.certificates:
            command += ["--cacert", self.certificates.ca, "--cert", self.client_certificate, "--key",
                        self.client_key]
        if user:
            command += ["--user", user]
        done = subprocess.run(list(map(str, command + list(args))), capture_output=True, text=True,
                              timeout=60, env=dict(os.environ, ETCDCTL_API="3"))
        if check and done.returncode != 0:
            raise AssertionError(f"etcdctl {args}: {done.stdout}{done.stderr}")
        return done.stdout if check else done

    def await_healthy(self):
        await_true(lambda: self.ctl("endpoint", "health", check=False).returncode == 0, 60,
                   "all members of etcd are healthy")

    def kill(self, member, which=signal.SIGKILL):
        os.kill(self.processes[member].pid, which)
        if which == signal.SIGKILL:
            self.processes[member].wait(10)

    def stand_still(self):
        for member in range(len(self.processes)):
            self.kill(member, signal.SIGSTOP)

    def go_on(self):
        for member in range(len(self.processes)):
            self.kill(member, signal.SIGCONT)

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait(10)


def keys_of(etcd):
    return etcd.ctl("get", "--prefix", "/antdt/", "--keys-only").split()
