"""Processes of all kinds are killed at random while two domains, a host each, send one another updates
(trainer.sync = "gaia"), also all workers of a domain together. The job ends, and every record is in the
merged model once for each epoch."""

import os
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
import tally
from harness import is_built_in, needs_trainer, processes_of
from kills import EPOCHS, Kills

DOMAINS = jobs.domains("hosts", east=["hosta"], west=["hostb"])


@needs_trainer
class KillsWhileDomainsDiffer(Kills):
    records = 60_000
    kills = int(os.environ.get("ANTDT_KILLS", "20"))
    weights = {"domain": 4, **Kills.weights}

    def job_with(self, extra):
        return self.write("job.toml", tally.job(
            workers=4, records=self.records, epochs=EPOCHS, batch=96, delay="25ms",
            extra="gaia = { whole_every = 20 }\n" + DOMAINS + extra, sync="gaia"))

    is_worker = staticmethod(is_built_in)

    def strike(self, kind, run_dir):
        if kind != "domain":
            return super().strike(kind, run_dir)
        status = self.status(run_dir)
        if not status:
            return False
        host = self.random.choice(["hosta", "hostb"])
        there = {w["pid"] for w in status["workers"] if w["host"] == host}
        alive = [pid for pid, command in processes_of(str(self.dir))
                 if pid in there and self.is_worker(command)]
        return len([pid for pid in alive if self.kill(pid)]) > 0

    def test_random_kills_of_everything_lose_nothing(self):
        self.check_random_kills()


if __name__ == "__main__":
    unittest.main()
