"""Processes of all kinds are killed at random while Python workers train the tally as a module.
Each record has entered it once for each epoch."""
import array
import os
import unittest

import python_jobs
import kills

import antdt


@python_jobs.needs_torch
class PythonKills(kills.Kills, python_jobs.PythonJobs):
    records = int(os.environ.get("ANTDT_PYTHON_RECORDS", "60000"))
    kills = int(os.environ.get("ANTDT_PYTHON_KILLS", "12"))
    python = os.environ.get("ANTDT_KILLED_PYTHON")  # else Debian's

    def job_with(self, extra):
        # 20 ms a micro-batch, and one process that reads ahead.
        return self.toml("tally.py", self.records, 0.02, 1, python=self.python, records=self.records,
                         epochs=kills.EPOCHS, batch=256, extra=extra)

    @staticmethod
    def is_worker(command):
        return "tally.py" in command and "python" in command.split(" ", 1)[0]

    def counts(self, run_dir):
        values = array.array("f")
        values.frombytes(antdt.Checkpoint(run_dir).read("model/counts"))
        return values

    def test_random_kills_of_everything_lose_nothing(self):
        self.check_random_kills()


if __name__ == "__main__":
    unittest.main()
