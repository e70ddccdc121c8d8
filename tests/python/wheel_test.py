"""The wheel, installed into an empty virtual environment, works as an installation, even if none of
its bundled libraries is installed in the system."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import python_jobs
from harness import BIN, Run

PROGRAMS = ("antdt", "antdtd", "antdt-jobd", "antdt-instrument", "antdt-server", "antdt-shim")
# Runs a command in a mount namespace in which the files named before "--" are empty.
HIDING = """
while [ "$1" != -- ]; do mount --bind /dev/null "$1" || exit 99; shift; done
shift
exec "$@"
"""


@python_jobs.needs_torch
class WheelOfThePackage(python_jobs.PythonJobs):
    @classmethod
    def setUpClass(cls):
        """Makes the wheel, and installs it."""
        folder = tempfile.TemporaryDirectory(prefix="antdt-wheel-")
        cls.addClassCleanup(folder.cleanup)
        made = cls.output_of(sys.executable, python_jobs.SOURCE / "scripts" / "wheel", BIN.parent,
                             folder.name)
        cls.wheel = pathlib.Path(made.split()[-1])
        cls.venv = pathlib.Path(folder.name) / "venv"
        made = subprocess.run([sys.executable, "-m", "venv", str(cls.venv)], capture_output=True,
                              text=True)
        if made.returncode != 0:
            raise unittest.SkipTest(f"no virtual environments here: {made.stdout}{made.stderr}")
        cls.output_of(cls.venv / "bin" / "pip", "install", "--no-index", "--no-deps", cls.wheel)
        # Debian's Python has another place for the packages of itself than for those of an environment.
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        cls.packages = pathlib.Path(cls.output_of(cls.venv / "bin" / "python", "-c", where).strip())

    def setUp(self):
        super().setUp()
        # The programs find their libraries without help.
        self.env = dict({k: v for k, v in os.environ.items()
                         if not k.startswith("ANTDT_") and k != "LD_LIBRARY_PATH"},
                        **{k: self.env[k] for k in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "TMPDIR")})

    @staticmethod
    def output_of(*command, env=None):
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=200,
                              env=env)
        if done.returncode != 0:
            raise AssertionError(f"{command[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def job_of(self, python, program, *arguments):
        command = ", ".join(f'"{word}"' for word in (python, python_jobs.PROGRAMS / program, *arguments))
        return self.write("job.toml", f"""
schema = 1
[job]
name = "wheel"
epochs = 2
[roles.worker]
count = 2
command = [{command}]
env = {{ PYTHONPATH = "{self.packages}", PYTHONDONTWRITEBYTECODE = "1", OMP_NUM_THREADS = "1" }}
[data]
format = "index"
records = 2000
[batch]
global = 64
[trainer]
sync = "allreduce"
""")

    def run_wheel(self, job, *before):
        """`antdt run` of the wheel."""
        self.count += 1
        run_dir = self.dir / f"run{self.count}"
        done = subprocess.run([*map(str, before), str(self.venv / "bin" / "antdt"), "run", str(job),
                               "--run-dir", str(run_dir)], env=self.env, cwd=self.dir,
                              capture_output=True, text=True, timeout=200)
        run = Run(done, run_dir)
        self.assert_done(run)
        self.assertIn(str(self.venv), (run_dir / "agent.log").read_text())
        self.assert_once(run, 2, 2000)
        self.assert_nothing_left()

    def bundled(self):
        """The system's files of the libraries that the wheel bundles, but for those without which
        Python itself does not start: Debian's needs zlib."""
        found = set()
        pythons = self.output_of("ldd", (self.venv / "bin" / "python").resolve())
        for path in (self.packages / "antdt" / "lib").iterdir():
            for folder in ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu"):
                if (pathlib.Path(folder) / path.name).exists() and path.name not in pythons:
                    found.add(str((pathlib.Path(folder) / path.name).resolve()))
        return sorted(found)

    def test_it_installs_and_runs_a_job_with_each_pytorch(self):
        self.assertRegex(self.wheel.name, r"^antdt-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl$")
        print(self.wheel.name, f"{self.wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        self.assertIsNone(zipfile.ZipFile(self.wheel).testzip())
        for name in PROGRAMS:
            said = subprocess.run([self.venv / "bin" / name, "--help"], capture_output=True, text=True,
                                  env=self.env)
            self.assertIn("Usage:", said.stdout + said.stderr, name)
        found = self.output_of(self.venv / "bin" / "python", "-c", "import antdt, antdt._abi as a; "
                                 "print(antdt.__version__, a.load().antdt_version().decode())",
                                 env={"PATH": "/usr/bin"})
        self.assertEqual(len(set(found.split())), 1, found)
        for python in python_jobs.PYTHONS:
            with self.subTest(python):
                self.run_wheel(self.job_of(python, "tally.py", "2000"))

    def test_every_library_but_the_systems_is_found_in_it(self):
        files = [self.packages / "antdt" / "bin" / name for name in PROGRAMS]
        files += (self.packages / "antdt" / "lib").iterdir()
        of_the_system = ("linux-vdso", "ld-linux", "libc.", "libm.", "libdl.", "librt.", "libpthread.",
                         "libresolv.", "libutil.", "libgcc_s.", "libstdc++.")
        for path in files:
            # Loaded as by a program or libantdt, whose run path also holds for the libraries that they load.
            env = dict(self.env, LD_LIBRARY_PATH=str(path.parent) if path.suffix != "" and
                       not path.name.startswith("libantdt") else "")
            for line in self.output_of("ldd", path, env=env).splitlines():
                name = pathlib.Path(line.split()[0]).name
                if not name.startswith(of_the_system):
                    self.assertIn(str(self.packages), line, f"{path.name} finds it elsewhere")

    def test_it_runs_where_these_libraries_are_not_installed(self):
        hidden = self.bundled()
        self.assertGreater(len(hidden), 3)
        unshare = ["unshare", "--mount"] if os.geteuid() == 0 else \
            ["unshare", "--user", "--map-root-user", "--mount"]
        before = [*unshare, "sh", "-c", HIDING, "sh", *hidden, "--"]
        tried = subprocess.run([*before, "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            self.skipTest(f"no mount namespaces here: {tried.stderr}")
        # The build's own programs do not start there, which shows that the files are hidden.
        self.assertNotEqual(subprocess.run([*before, str(BIN / "antdt"), "--help"],
                                           capture_output=True).returncode, 0)
        self.run_wheel(self.job_of(self.venv / "bin" / "python", "loose.py", self.dir, "2000", "0"),
                       *before)


if __name__ == "__main__":
    unittest.main()
