"""The unit tests of the package, under each PyTorch that there is."""
import os
import subprocess
import unittest

import python_jobs

UNITS = python_jobs.PROGRAMS.parent / "units"


@python_jobs.needs_torch
class Units(unittest.TestCase):
    def test_all_pass_under_every_pytorch(self):
        env = dict(os.environ, ANTDT_LIBRARY=str(python_jobs.LIBRARY), **python_jobs.environment())
        for python in python_jobs.PYTHONS:
            with self.subTest(python):
                done = subprocess.run([python, "-m", "unittest", "discover", "-s", str(UNITS), "-p",
                                       "*_test.py"], env=env, capture_output=True, text=True,
                                      timeout=300)
                print(python, done.stderr.strip().splitlines()[-3:], flush=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("Ran 0 tests", done.stderr)


if __name__ == "__main__":
    unittest.main()
