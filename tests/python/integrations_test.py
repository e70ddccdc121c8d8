"""antdt.integrations: loops of accelerate, modules of Lightning and Trainers of transformers,
compared with the originals outside a job, and in a job. scripts/install-torch2 makes an interpreter
that has PyTorch, accelerate, pytorch_lightning and transformers; ANTDT_INTEGRATIONS_PYTHON names another."""
import json
import os
import subprocess
import unittest

import python_jobs

RECORDS, EPOCHS = 600, 3
COMPARE = """
import sys, torch
ours, theirs = (torch.load(path) for path in sys.argv[1:])
print(max((ours[k] - v).abs().max().item() for k, v in theirs.items()))
"""
THEIRS = os.environ.get("ANTDT_INTEGRATIONS_PYTHON") or python_jobs.TORCH2


def needs(package):
    has = os.path.exists(THEIRS) and python_jobs.has_package(THEIRS, package)
    return unittest.skipUnless(has, f"no Python with {package} (scripts/install-torch2)")


@python_jobs.needs_torch
class Integrations(python_jobs.PythonJobs):
    def check_beside_theirs(self, program):
        for which in ("ours", "theirs"):
            done = self.run_alone(python_jobs.PROGRAMS / program, which, self.dir / which, python=THEIRS)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([THEIRS, "-c", COMPARE, str(self.dir / "ours"), str(self.dir / "theirs")],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(float(done.stdout), 1e-5)

    def run_in_job(self, *command, python=None, epochs=EPOCHS):
        job = self.toml(*command, workers=3, python=python, records=RECORDS, epochs=EPOCHS, batch=25,
                        extra="[failure]\nbudgets = { program = 9 }\n")
        run = self.run_job(job, timeout=120)
        self.assert_done(run)
        self.assert_once(run, epochs, RECORDS)
        self.assert_nothing_left()
        return run

    def run_to_its_own_end(self, program, reason):
        """The program needs fewer epochs than job.toml has."""
        run = self.run_in_job(program, "ours", "-", 2, epochs=2)
        self.assertEqual(run.summary["training_ended"], {"epochs": 2, "reason": reason})
        self.assertEqual(run.summary["failures"], [])

    @needs("accelerate")
    def test_a_loop_of_accelerate_trains_alone_what_accelerate_trains(self):
        self.check_beside_theirs("accelerate_loop.py")

    @needs("pytorch_lightning")
    def test_a_module_of_lightning_trains_alone_what_lightning_trains(self):
        self.check_beside_theirs("lightning_module.py")

    @needs("transformers")
    def test_a_trainer_of_transformers_trains_alone_what_transformers_trains(self):
        self.check_beside_theirs("transformers_trainer.py")

    @needs("transformers")
    def test_a_trainer_of_transformers_counts_each_record_once(self):
        run = self.run_in_job("transformers_trainer.py", "ours", "-", python=THEIRS)
        self.assertEqual(run.summary["failures"], [])

    def test_a_loop_of_accelerate_counts_each_record_once_and_its_exception_is_told(self):
        run = self.run_in_job("accelerate_loop.py", "ours", "-", "fails")
        self.assertIn("ValueError: of the loop's own", json.dumps(run.summary["failures"]),
                      run.explain())

    def test_a_module_of_lightning_counts_each_record_once(self):
        run = self.run_in_job("lightning_module.py", "ours", "-")
        self.assertEqual(run.summary["failures"], [])

    def test_a_loop_of_accelerate_has_fewer_epochs_than_the_job(self):
        self.run_to_its_own_end("accelerate_loop.py", "the program called accelerator.end_training()")

    def test_a_module_of_lightning_is_good_enough_before_the_last_epoch(self):
        self.run_to_its_own_end("lightning_module.py", "enough")


if __name__ == "__main__":
    unittest.main()
