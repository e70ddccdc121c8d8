"""Processes of all kinds are killed at random while workers average their parameters in groups
(trainer.sync = "ds-sync"). The job ends, and every record is in the merged model once for each
epoch, in the update of one worker only."""

import os
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import is_built_in, needs_trainer
from kills import EPOCHS, Kills


@needs_trainer
class KillsWhileReplicasDiffer(Kills):
    # A kill in a group of two or three, in the middle of a mix, a step, or a consolidation.
    records = 60_000
    kills = int(os.environ.get("ANTDT_KILLS", "30"))

    def job_with(self, extra):
        return self.write("job.toml", tally.job(workers=6, records=self.records, epochs=EPOCHS,
                                                batch=96, delay="25ms", extra=extra,
                                                sync="ds-sync"))

    is_worker = staticmethod(is_built_in)

    def test_random_kills_of_everything_lose_nothing(self):
        self.check_random_kills()


if __name__ == "__main__":
    unittest.main()
