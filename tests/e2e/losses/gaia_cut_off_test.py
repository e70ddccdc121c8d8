"""A domain is cut off from the other one and comes back (trainer.sync = "gaia"): the link between two
network namespaces, a domain each, goes down without closing connections. The other domain goes on. The test
is skipped if namespaces cannot be made."""

import os
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
import tally
from harness import needs_trainer
from two_networks import HERE, INSIDE, THERE, TwoNetworks, run_inside

RECORDS, EPOCHS = 48_000, 2
CUT_OFF_S = 20
MORE = """
gaia = {{ whole_every = 20 }}
{domains}
[cluster]
hosts = ["{here}:7700", "{there}:7700"]
keys = "{keys}"
[failure]
host_lost_after = "8s"
hang_after = "30s"
orphan_timeout = "10s"
budgets = {{ host = 1000, hang = 1000, collective = 1000, signal = 1000, program = 1000 }}
[checkpoint]
every = "5s"
"""


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in a network of its own only")
class CutOff(TwoNetworks, tally.TallyTest):
    def job(self):
        text = tally.job(workers=4, records=RECORDS, epochs=EPOCHS, batch=96, delay="40ms", sync="gaia",
                         extra=MORE.format(
                             domains=jobs.domains("hosts", east=["hosta"], west=["hostb"]),
                             here=HERE, there=THERE, keys=self.dir / "keys"))
        # Two workers of each host, and no room there for those of the other one.
        return self.write("job.toml", text.replace(
            'command = ["antdt-trainer"]', 'command = ["antdt-trainer"]\nresources = { cpus = 0.5 }'))

    def members(self, status):
        return {w["host"] for w in status["workers"] if w["rank"] is not None}

    def test_the_other_domain_goes_on_and_the_cut_off_one_comes_back_with_a_copy(self):
        self.both_agents()
        process, run_dir = self.start_job(self.job())
        before = self.await_training(run_dir, samples=3000, seconds=120)
        self.assertEqual(self.members(before), {"hosta", "hostb"})

        self.link("down")
        cut = time.monotonic()
        alone = self.await_status(
            run_dir, lambda s: s["state"] == "training" and self.members(s) == {"hosta"}, 60,
            "one domain trains alone")
        # It trains all the time for which the link is down, and some whole exchanges' steps at least.
        on = self.await_status(
            run_dir, lambda s: time.monotonic() - cut >= CUT_OFF_S
            and s["samples_done"] >= alone["samples_done"] + 4000, 120, "it trains 4,000 more")
        self.assertEqual(self.members(on), {"hosta"})
        self.link("up")

        back = self.await_status(
            run_dir, lambda s: s["state"] == "training" and self.members(s) == {"hosta", "hostb"}
            and sum(w["rank"] is not None for w in s["workers"]) == 4, 120, "all four train")
        self.assertGreater(back["generation"], alone["generation"])
        self.assertGreaterEqual(back["samples_done"], on["samples_done"], "nothing was trained again")
        summary = self.finish(process, run_dir, timeout=300)
        self.assertGreater(summary["traffic"]["healing_bytes"], 0, "a copy of the model")
        self.assert_exact(summary, run_dir, RECORDS, EPOCHS)
        print(f"alone after {alone['samples_done']} records, back after {back['samples_done']}; "
              f"{summary['generations']} generations", flush=True)


class InItsNetwork(unittest.TestCase):
    def test_a_domain_is_cut_off_and_comes_back(self):
        run_inside(self, __file__, "CutOff")


if __name__ == "__main__":
    unittest.main()
