"""The tarball for machines without a network: it brings what its programs load, and they run from where
it is unpacked."""

import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import shared  # noqa: F401 (finds what follows)
from debs import BUILD
from harness import SOURCE, EndToEnd, await_true
from real_systemd import Machine, await_agent, enable_agent, run_documented, why_not

# What is part of each system (scripts/wheel says the same).
OF_THE_SYSTEM = re.compile(r"(ld-linux-x86-64|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+))\.so")


def make(where):
    done = subprocess.run([SOURCE / "scripts/tarball", BUILD, where], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return pathlib.Path(done.stdout.strip())


class Tarball(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for program in ("cmake", "ldd", "strip", "objdump"):
            if shutil.which(program) is None:
                raise unittest.SkipTest(f"{program} is not installed")
        scratch = tempfile.TemporaryDirectory(prefix="antdt-tarball-")
        cls.addClassCleanup(scratch.cleanup)
        cls.made = make(pathlib.Path(scratch.name))

    def unpacked(self):
        with tarfile.open(self.made) as archive:
            archive.extractall(self.dir / "place")
        return self.dir / "place" / self.made.name.removesuffix(".tar.gz")

    def test_every_library_that_is_not_of_the_system_is_its_own(self):
        top = self.unpacked()
        programs = sorted((top / "bin").iterdir())
        self.assertEqual([p.name for p in programs],
                         ["antdt", "antdt-instrument", "antdt-jobd", "antdt-server", "antdt-shim", "antdtd"])
        for path in [*programs, top / "lib/libantdt.so.1"]:
            said = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
            for line in said.splitlines():
                name, _, place = line.strip().partition(" => ")
                if place and not OF_THE_SYSTEM.match(name):
                    self.assertTrue(place.startswith(f"{top}/"), line)

    def test_python_finds_the_library_in_it(self):
        top = self.unpacked()
        said = subprocess.run(
            [sys.executable, "-c", "import antdt, antdt._abi; print(antdt.__version__, antdt._abi.load()._name)"],
            env={"PYTHONPATH": str(top / "lib/python3/dist-packages"), "PATH": "/usr/bin:/bin"},
            capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn(f"{top}/lib/", said.stdout)

    def test_a_job_runs_from_where_it_is_unpacked(self):
        top = self.unpacked()
        job = self.write("job.toml", """
schema = 1
[job]
name = "hello"
[roles.worker]
count = 2
protocol = "exec"
restart = "gang"
command = ["sh", "-c", "echo hello from $ANTDT_WORKER_ID"]
""")
        done = subprocess.run([top / "bin/antdt", "run", job, "--run-dir", self.dir / "run"], cwd=self.dir,
                              env={**self.env, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said = "".join(p.read_text() for p in (self.dir / "run/logs").glob("w*.out"))
        self.assertIn("hello from w1", said)
        await_true(lambda: (self.dir / "run/summary.json").exists(), 20, "the job is over")

    def test_its_unit_starts_the_agent_of_where_it_is_unpacked(self):
        if (reason := why_not()) is not None:
            self.skipTest(reason)
        machine = Machine(self, also=f"mkdir -p opt\ntar -xzf {self.made} -C opt")
        top = "/opt/" + self.made.name.removesuffix(".tar.gz")
        run_documented(machine, "- The tarball is unpacked", {"$PWD": top})
        self.assertIn("antdt-admin", machine.run("getent", "group", "antdt-admin"))
        machine.run("ln", "-s", f"{top}/bin/antdt", "/usr/local/bin/antdt")
        enable_agent(machine, "antdt-alice")
        agent = await_agent(machine)
        self.assertEqual(pathlib.Path(f"/proc/{agent}/exe").readlink().as_posix(), f"{top}/bin/antdtd")

    def test_it_has_the_same_bytes_each_time(self):
        self.assertEqual(make(self.dir / "again").read_bytes(), self.made.read_bytes())


if __name__ == "__main__":
    unittest.main()
