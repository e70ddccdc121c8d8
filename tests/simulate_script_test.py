"""scripts/simulate builds and runs without what only tests and the trainer need."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[1]

# Configures really, and says what it would build.
CMAKE = """#!/bin/sh
if [ "$1" = --build ]; then
  exec ninja -n -C "$2" sim-run
fi
exec {cmake} "$@"
"""
SIM_RUN = '#!/bin/sh\necho "ran $*"\n'


class SimulateScript(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="antdt-simulate-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.tree = self.dir / "tree"
        self.tree.mkdir()
        for entry in SOURCE.iterdir():
            if entry.name not in ("build", ".git"):
                (self.tree / entry.name).symlink_to(entry)
        self.program(self.dir / "bin" / "cmake", CMAKE.format(cmake=shutil.which("cmake")))

    def program(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def simulate(self, *args):
        env = dict(os.environ, PATH=f"{self.dir / 'bin'}:{os.environ['PATH']}")
        env.pop("BUILD", None)
        return subprocess.run(["scripts/simulate", *args], cwd=self.tree, env=env, text=True,
                              capture_output=True, timeout=120)

    def test_it_configures_and_runs_in_a_tree_without_a_build(self):
        self.program(self.tree / "build" / "release" / "bin" / "sim-run", SIM_RUN)
        done = self.simulate("--seeds", "3")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("ran --seeds 3", done.stdout)

    def test_the_build_that_is_there_is_used(self):
        self.program(self.tree / "build" / "bin" / "sim-run", SIM_RUN)
        (self.tree / "build" / "build.ninja").write_text("build sim-run: phony\n")
        done = self.simulate("--seeds", "4")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("ran --seeds 4", done.stdout)
        self.assertFalse((self.tree / "build" / "release").exists())


if __name__ == "__main__":
    unittest.main()
