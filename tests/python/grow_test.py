"""A Python program whose data grow: lines are added to its file while the run is stopped."""
import array
import unittest

import python_jobs

import antdt

BEGAN, NOW, EPOCHS = 1500, 2100, 3


@python_jobs.needs_torch
class PythonGrow(python_jobs.PythonJobs):
    def lines(self, *numbers):
        with open(self.dir / "numbers.txt", "a") as file:
            file.writelines(f"{i}\n" for i in range(*numbers))

    def test_the_next_epoch_has_the_lines_that_were_added(self):
        self.lines(BEGAN)
        job = self.toml("tally.py", self.dir / "numbers.txt", 0.05, 1, NOW, records=BEGAN,
                        epochs=EPOCHS, workers=2)
        process, run_dir = self.start_job(job)
        self.await_training(run_dir, samples=BEGAN + 200, seconds=120)
        self.assertEqual(self.antdt("stop", run_dir, timeout=60).returncode, 0)
        process.communicate(timeout=60)
        self.lines(BEGAN, NOW)
        resumed = self.antdt("run", "--resume", run_dir, "--grow", "--set", f"data.records={NOW}",
                             timeout=180)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        values = array.array("f")
        values.frombytes(antdt.Checkpoint(run_dir).read("model/counts"))
        self.assertEqual(list(values), [EPOCHS] * BEGAN + [1] * (NOW - BEGAN))


if __name__ == "__main__":
    unittest.main()
