"""Parameter servers and workers on two hosts with a wire between them, which are two namespaces
(two_networks.py). Skipped if they cannot be made."""

import json
import os
import unittest

import shared  # noqa: F401 (finds what follows)
import server_jobs
from harness import needs_trainer
from server_jobs import BUDGETS, job
from two_networks import HERE, INSIDE, THERE, TwoNetworks, run_inside

RECORDS = 12000


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in a network of its own only")
class ServersOfTwoHosts(server_jobs.ServersTest, TwoNetworks):
    def job(self, extra="", **options):
        cluster = f"""[cluster]
hosts = ["{HERE}:7700", "{THERE}:7700"]
keys = "{self.dir / "keys"}"
{extra}"""
        return self.write("job.toml", job(workers=2, records=RECORDS, sync="ps-asp",
                                          extra=cluster, **options))

    def test_a_link_that_is_away_for_a_moment_costs_no_record(self):
        self.both_agents()
        process, run_dir = self.start_job(self.job(BUDGETS, delay="20ms"))
        self.await_training(run_dir, samples=500)
        self.link("down")
        self.link("up")
        summary = self.finish(process, run_dir)
        self.assertEqual({s["host"] for s in summary["servers"]}, {"hosta", "hostb"})
        self.assertEqual({w["host"] for w in summary["workers"]}, {"hosta", "hostb"})
        self.assert_exact_on_servers(summary, run_dir, RECORDS, 2)

    def test_an_address_that_the_others_do_not_reach_is_named(self):
        self.both_agents()
        process, run_dir = self.start_job(self.job('interface = "lo"\n'))
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 3, self.why(out, err, run_dir))
        cause = json.loads((run_dir / "summary.json").read_text())["exit"]["first_cause"]
        self.assertRegex(cause, r"w\d on host[ab]: cannot reach parameter server s\d from here: "
                                r"connecting to 127\.0\.0\.1:\d+: Connection refused")
        self.assertIn("[cluster] interface", cause)


class InANetworkOfItsOwn(unittest.TestCase):
    def test_servers_of_two_hosts(self):
        run_inside(self, __file__, "ServersOfTwoHosts")


if __name__ == "__main__":
    unittest.main()
