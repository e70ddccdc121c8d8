"""The wheel, installed into an empty virtual environment, is an installation."""
import os
import pathlib
import subprocess
import sys
import sysconfig
import unittest
import zipfile

import python_jobs
from harness import BIN, Run


@python_jobs.needs_torch
class WheelOfThePackage(python_jobs.PythonJobs):
    def run_checked(self, *command, env=None):
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=200,
                              env=env or self.env, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_it_installs_and_runs_a_job(self):
        out = self.dir / "wheel"
        made = self.run_checked(sys.executable, python_jobs.SOURCE / "scripts" / "wheel", BIN.parent, out)
        wheel = pathlib.Path(made.split()[-1])
        self.assertRegex(wheel.name, r"^antdt-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl$")
        print(wheel.name, f"{wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        self.assertIsNone(zipfile.ZipFile(wheel).testzip())

        venv = self.dir / "venv"
        made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
        if made.returncode != 0:
            self.skipTest(f"no virtual environments here: {made.stdout}{made.stderr}")
        self.run_checked(venv / "bin" / "pip", "install", "--no-index", "--no-deps", wheel)
        packages = sysconfig.get_path("purelib", vars={"base": str(venv)})
        self.assertIn("antdt", self.run_checked(venv / "bin" / "antdt", "--help"))
        found = self.run_checked(venv / "bin" / "python", "-c", "import antdt, antdt._abi as a; "
                                 "print(antdt.__version__, a.load().antdt_version().decode())",
                                 env={"PATH": "/usr/bin"})
        self.assertEqual(len(set(found.split())), 1, found)

        # The programs of the wheel; the interpreter that has PyTorch, with the package of the wheel.
        self.env = dict({k: v for k, v in os.environ.items() if not k.startswith("ANTDT_")},
                        **{k: self.env[k] for k in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "TMPDIR")})
        job = self.write("job.toml", f"""
schema = 1
[job]
name = "wheel"
epochs = 2
[roles.worker]
count = 2
command = ["{python_jobs.PYTHONS[0]}", "{python_jobs.PROGRAMS}/tally.py", "2000"]
env = {{ PYTHONPATH = "{packages}", PYTHONDONTWRITEBYTECODE = "1", OMP_NUM_THREADS = "1" }}
[data]
format = "index"
records = 2000
[batch]
global = 64
[trainer]
sync = "allreduce"
""")
        run_dir = self.dir / "run"
        done = subprocess.run([str(venv / "bin" / "antdt"), "run", str(job), "--run-dir", str(run_dir)],
                              env=self.env, cwd=self.dir, capture_output=True, text=True, timeout=200)
        run = Run(done, run_dir)
        self.assert_done(run)
        self.assertIn(str(venv), (run_dir / "agent.log").read_text())
        self.assert_once(run, 2, 2000)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
