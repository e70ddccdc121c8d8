"""Domains that are made up on one machine, with a slow link between them: what crosses it, and how
long workers waited for it, is told."""

import unittest

import shared  # noqa: F401 (finds what follows)
import emulated_test
import jobs
from harness import EndToEnd, await_true, needs_trainer

DOMAINS = jobs.domains(east=["w0", "w1"], west=["w2", "w3"])
# Each message of a step is small, so that a step takes two latencies: one for the sum, one for the
# slots.
SLOW_LINK = """
[[inject]]
domain = "east"
to_domain = "west"
both_ways = true
latency = "{latency}"
bandwidth = "12500000B"
"""
DEVICES = """
[[emulated.device]]
class = "any"
flat = "1ms"
flat_until = 8
per_sample = "100us"
"""
RECORDS = 1280  # 20 steps of 64


@needs_trainer
class Domains(EndToEnd):
    def run_with(self, extra):
        path = self.write("job.toml", emulated_test.job(RECORDS, workers=4, devices=DEVICES,
                                                        extra=DOMAINS + extra))
        run = self.run_job(path)
        self.assert_done(run)
        return run

    def pairs(self, run):
        return {(t["from_domain"], t["to_domain"]): t for t in run.summary["traffic"]["domains"]}

    def test_a_slow_link_between_domains_costs_what_it_must_and_is_seen(self):
        near = self.run_with("")
        far = self.run_with(SLOW_LINK.format(latency="20ms"))
        self.assertEqual(far.summary["collective"],
                         "shm and tcp (4 members, 2 groups that share memory)")
        steps = far.summary["steps"]
        # Each step sums and gathers: two messages each way, one after the other.
        cost = far.summary["training_seconds"] - near.summary["training_seconds"]
        self.assertGreater(cost, steps * 2 * 0.020 * 0.9)
        self.assertLess(cost, steps * 2 * 0.020 * 2 + 2)
        pairs = self.pairs(far)
        self.assertEqual(set(pairs), {(a, b) for a in ("east", "west") for b in ("east", "west")})
        for a, b in (("east", "west"), ("west", "east")):
            self.assertEqual(pairs[a, b]["sent_bytes"], pairs[b, a]["received_bytes"])
            self.assertGreater(pairs[a, b]["sent_bytes"], 0)
            self.assertGreater(pairs[a, b]["waited_seconds"], steps * 2 * 0.020 * 0.9)
        traffic = far.summary["traffic"]
        self.assertEqual(sum(t["sent_bytes"] for t in traffic["domains"]),
                         sum(t["sent_bytes"] for t in traffic["hosts"]))
        self.assertEqual(traffic["shared_memory_bytes"],
                         sum(pairs[a, a]["sent_bytes"] for a in ("east", "west")),
                         "within a domain all goes through memory, between them nothing")
        self.assertIn("longest wait between domains: workers in ", far.out)

    def test_a_drill_about_a_link_is_checked(self):
        _, run_dir = self.start_job(self.write("job.toml", emulated_test.job(
            640_000, workers=4, devices=DEVICES, extra=DOMAINS)))
        await_true(lambda: self.antdt("status", run_dir).returncode == 0, 60, "the job answers")
        drill = self.antdt("inject", run_dir, 'domain="east"', 'to_domain="north"',
                           'latency="30ms"')
        self.assertEqual(drill.returncode, 2, drill.stdout + drill.stderr)
        self.assertIn("'north' is no domain of this job: east, west", drill.stderr)


if __name__ == "__main__":
    unittest.main()
