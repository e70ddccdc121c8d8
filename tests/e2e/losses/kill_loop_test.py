"""Processes of all kinds are killed at random while a job of two agents trains. The job ends, and
every record has entered the model once for each epoch."""

import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import needs_trainer
from kills import DELAY, EPOCHS, Kills


@needs_trainer
class KillLoop(Kills):
    def job_with(self, extra):
        return self.write("job.toml", tally.job(records=self.records, epochs=EPOCHS, batch=256,
                                                delay=DELAY, extra=extra))

    @staticmethod
    def is_worker(command):
        return command.split(" ", 1)[0].endswith("antdt-trainer")

    def test_random_kills_of_everything_lose_nothing(self):
        self.check_random_kills()


if __name__ == "__main__":
    unittest.main()
