"""Agents as daemons of their own on 127.0.0.1, with CURVE, for tests over several hosts."""

import shlex
import socket
import subprocess

from harness import BIN, EndToEnd, await_true


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Hosts(EndToEnd):
    def setUp(self):
        super().setUp()
        self.agent_pids = {}  # by the host's name

    def keys(self, name):
        """Keys of an agent and of a job user who may use it."""
        directory = self.dir / name
        made = self.antdt("keygen", "--dir", directory)
        self.assertEqual(made.returncode, 0, made.stderr)
        return directory

    def agent(self, name, keys, instead={}, address="127.0.0.1", flags=()):
        """`flags`: further ones of the agent. `instead`: files of this host that replace others, in a mount
        namespace."""
        at = f"[{address}]" if ":" in address else address
        port = free_port()
        mounts = [word for path, other in instead.items()
                  for word in ("mount", "--bind", shlex.quote(str(other)), shlex.quote(str(path)),
                               "&&")]
        own = ["unshare", "--mount", "sh", "-c", " ".join([*mounts, 'exec "$@"']), "sh"]
        log = open(self.dir / f"{name}.log", "w")
        process = subprocess.Popen(
            [*(own if instead else []), str(BIN / "antdtd"),
             "--listen", f"{at}:{port}", "--keys", str(keys),
             "--state-dir", str(self.dir / f"{name}-state"), "--host-name", name,
             "--socket-dir", str(self.runtime / name), "--address", address, "--allow-root",
             *flags],
            env=self.env, stdout=log, stderr=subprocess.STDOUT)
        self.agent_pids[name] = process.pid
        self.addCleanup(log.close)

        def end():
            process.terminate()
            process.wait(10)

        self.addCleanup(end)
        await_true(lambda: self.listens(address, port, process), 10, f"{name} listens: {log.name}")
        return f"{at}:{port}"

    @staticmethod
    def listens(address, port, process):
        assert process.poll() is None, "the agent ended"
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family) as s:
            return s.connect_ex((address, port)) == 0

    def cluster(self, hosts, keys):
        listed = ", ".join(f'"{h}"' for h in hosts)
        return f'[cluster]\nhosts = [{listed}]\nkeys = "{keys}"\n'
