"""Processes of all kinds are killed at random while a job of two agents trains. The job ends, and
every record has entered the model once for each epoch."""

import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import is_built_in, needs_trainer
from kills import DELAY, EPOCHS, Kills


@needs_trainer
class KillLoop(Kills):
    def job_with(self, extra):
        return self.write("job.toml", tally.job(records=self.records, epochs=EPOCHS, batch=256,
                                                delay=DELAY, extra=extra))

    is_worker = staticmethod(is_built_in)

    def test_random_kills_of_everything_lose_nothing(self):
        self.check_random_kills()


if __name__ == "__main__":
    unittest.main()
