"""Unit tests of the package, under Debian's PyTorch and under PyPI's."""
import os
import pathlib
import signal
import subprocess

import python_jobs

SECONDS = 300  # alone they take 30


class UnderEachTorch:
    """For a TestCase: the tests in `folder`, beside this file, all pass."""
    folder = ""

    def all_pass_under(self, python):
        if python not in python_jobs.PYTHONS:
            self.skipTest(f"{python} has no PyTorch")
        tests_in = pathlib.Path(__file__).resolve().parent / self.folder
        env = dict(os.environ, ANTDT_LIBRARY=str(python_jobs.LIBRARY), **python_jobs.environment())
        tests = subprocess.Popen(
            [python, "-X", "faulthandler", "-m", "unittest", "discover", "-v", "-s", str(tests_in),
             "-p", "*_test.py"],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            said, _ = tests.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            tests.send_signal(signal.SIGABRT)  # it tells where each thread is
            said, _ = tests.communicate()
        print(python, said.strip().splitlines()[-3:], flush=True)
        self.assertEqual(tests.returncode, 0, said)
        self.assertNotIn("Ran 0 tests", said)

    def test_all_pass_under_debians_pytorch(self):
        self.all_pass_under(python_jobs.DEBIANS)

    def test_all_pass_under_pytorch_2(self):
        self.all_pass_under(python_jobs.TORCH2)
