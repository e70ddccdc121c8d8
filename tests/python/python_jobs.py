"""Shared by the tests of the Python package: interpreters with PyTorch, the package and libantdt of
the build, and jobs whose workers are Python programs."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests" / "e2e"), str(SOURCE / "python")]

import harness  # noqa: E402
import tally  # noqa: E402

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
LIBRARY = pathlib.Path(os.environ.get("ANTDT_LIBRARY",
                                      harness.BIN.parent / "lib" / "libantdt.so.1"))


def has_package(python, package="torch"):
    """Whether it is installed. To import it takes seconds, and every file of tests asks."""
    look = "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)"
    return subprocess.run([python, "-c", look, package], capture_output=True).returncode == 0


DEBIANS = "/usr/bin/python3"
# With PyTorch 2, Lightning, accelerate and transformers of PyPI: scripts/install-torch2 makes it.
TORCH2 = os.environ.get("ANTDT_TORCH2_PYTHON") or str(SOURCE / ".deps" / "torch2" / "bin" / "python")

# Debian's, and that of PyPI.
PYTHONS = [python for python in [DEBIANS, TORCH2]
           if pathlib.Path(python).exists() and has_package(python)]


def environment():
    """The environment with which a Python program finds the package."""
    return {"PYTHONPATH": str(SOURCE / "python"), "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1"}


def needs_torch(test):
    if not LIBRARY.exists():
        return unittest.skip(f"{LIBRARY} is not built")(test)
    return unittest.skipUnless(PYTHONS, "no python3-torch")(test)


class PythonJobs(tally.TallyTest):
    """Jobs whose workers are Python programs."""

    def toml(self, program, *arguments, records, python=None, workers=4, epochs=2, batch=64,
             extra=""):
        # A job's env may set no ANTDT_ variables.
        command = ["/usr/bin/env", f"ANTDT_LIBRARY={LIBRARY}", python or PYTHONS[0], str(program if os.sep in str(program) else
                                             PROGRAMS / program), *map(str, arguments)]
        variables = ", ".join(f"{k} = {json.dumps(v)}" for k, v in environment().items())
        return self.write("job.toml", f"""
schema = 1
[job]
name = "python"
epochs = {epochs}
seed = 11
[roles.worker]
count = {workers}
command = {json.dumps(command)}
env = {{ {variables} }}
[data]
format = "index"
records = {records}
[batch]
global = {batch}
[trainer]
sync = "allreduce"
{extra}
""")

    def assert_nothing_left(self):
        for path in self.temporary.glob("torchinductor_*"):  # PyTorch 2 makes it, and leaves it
            shutil.rmtree(path)
        super().assert_nothing_left()

    def run_alone(self, program, *arguments, python=None, timeout=120):
        """The program outside a job."""
        env = {k: v for k, v in self.env.items() if not k.startswith("ANTDT_")}
        return subprocess.run([python or PYTHONS[0], str(program), *map(str, arguments)],
                              env=dict(env, ANTDT_LIBRARY=str(LIBRARY), **environment()), cwd=self.dir, capture_output=True,
                              text=True, timeout=timeout)
