"""antdt plan and trainer.sync = "auto", with real trials of a real model. What a trial measures is not
judged: bench/plan.py compares predictions with real runs."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import EndToEnd, needs_trainer

JOB = """
schema = 1
[job]
name = "plan"
seed = 7
[roles.worker]
count = {workers}
{more}
[data]
format = "criteo"
paths = ["data/train.tsv"]
hash_buckets = 4096
[batch]
global = 256
[trainer]
model = "deepfm"
{trainer}
[checkpoint]
every = "0s"
"""
ROWS = 20_000
TRIED = {"allreduce", "allreduce sparse", "ps-bsp", "ps-asp", "hybrid"}
DOMAINS = jobs.domains(east=["w0"], west=["w1"]) + """
[[inject]]
domain = "east"
to_domain = "west"
both_ways = true
latency = "30ms"
"""


@needs_trainer
class Plan(EndToEnd):
    def setUp(self):
        super().setUp()
        made = self.antdt("data", "synth", "criteo", "--rows", ROWS, "--seed", 7, "--out",
                          self.dir / "data")
        self.assertEqual(made.returncode, 0, made.stderr)

    def job(self, workers=2, more="", trainer=""):
        return self.write("job.toml", JOB.format(workers=workers, more=more, trainer=trainer))

    def plan(self, *words):
        done = self.antdt("plan", *words, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def check(self, plan):
        known = {p["strategy"]: p for p in plan["predictions"] if "step_seconds" in p}
        for name, p in known.items():
            parts = p["compute_seconds"] + p["exchange_seconds"] + p["waiting_seconds"]
            self.assertAlmostEqual(parts, p["step_seconds"], places=9, msg=name)
            self.assertGreater(p["step_seconds"], 0, name)
        chosen = known[plan["recommended"]["strategy"]]
        usable = [p["step_seconds"] for p in known.values() if p["sync"]]
        self.assertLessEqual(chosen["step_seconds"], 1.05 * min(usable))
        self.assertTrue(plan["reasons"])
        return known

    def test_every_way_that_the_job_can_use_is_tried_and_nothing_is_left(self):
        # Other ways refuse what this one allows, and trials run without the job's own solution.
        job = self.job(more='[roles.server]\ncount = 2\n'
                            '[control]\nsolution = "command"\ncommand = ["/bin/true"]',
                       trainer='sync = "shadow-easgd"\nshadow = { every = 3, threads = 2 }')
        plan = self.plan(job, "--set", "data.delivery=at-least-once")
        known = self.check(plan)
        self.assertEqual(set(known), TRIED | {"ps-ssp", "shadow-easgd"})
        self.assertEqual({t["strategy"] for t in plan["measured"]["trials"]}, TRIED)
        model = plan["measured"]["model"]
        self.assertEqual((model["table_rows"], model["row_bytes"]), (4096, 36))
        self.assertEqual(plan["measured"]["step_of_one_worker"][0]["samples"], 256)
        self.assert_nothing_left()

    def test_a_drill_that_slows_all_links_is_added_and_ways_that_cannot_be_used_say_why(self):
        slow = self.job(more='[[inject]]\nworkers = ["*"]\nlatency = "20ms"\n',
                        trainer='optimizer = "sgd"\nmomentum = 0.9')
        plan = self.plan(slow)
        known = self.check(plan)
        # Slots, a sum of dense parameters, and the table wait for one another.
        self.assertGreater(known["allreduce"]["step_seconds"], 0.060)
        self.assertEqual(known["allreduce"]["basis"], "trial and formula")
        unknown = {p["strategy"]: p["unknown"] for p in plan["predictions"] if "unknown" in p}
        self.assertIn("servers keep no momentum", unknown["ps-bsp"])
        self.assertIn("servers keep no momentum", unknown["ps-ssp"])
        self.assert_nothing_left()

    def test_links_between_domains_are_known_and_gaia_is_tried_and_never_chosen_unasked(self):
        job = self.job(more=DOMAINS, trainer='optimizer = "sgd"\nlr = 0.05')
        plan = self.plan(job)
        known = self.check(plan)
        self.assertEqual(set(known), {"allreduce", "allreduce sparse", "ds-sync", "gaia"})
        self.assertEqual(plan["measured"]["domains"]["between"]["latency_seconds"], 0.03)
        self.assertIn("gaia", {t["strategy"] for t in plan["measured"]["trials"]})
        share = known["gaia"]["share_of_bytes"]
        self.assertEqual(share["least"], share["most"])
        self.assertGreater(share["most"], 0)
        self.assertLess(share["most"], 1)
        # A message of updates and the slots wait for one another; sums cost as many latencies at least.
        self.assertGreater(known["gaia"]["step_seconds"], 0.060)
        self.assertGreater(known["allreduce"]["step_seconds"], 0.060)
        self.assertEqual(known["gaia"]["sync"], "")
        unknown = {p["strategy"]: p["unknown"] for p in plan["predictions"] if "unknown" in p}
        self.assertIn("which servers refuse", unknown["ps-asp"])
        asked = self.plan(job, "--set", "trainer.sync=gaia", "--set", "trainer.gaia.threshold=1000000",
                          "--set", "inject=[]")
        self.assertIn("there are none", {p["strategy"]: p.get("unknown") for p in
                                         asked["predictions"]}["gaia"])
        self.assert_nothing_left()

    def test_a_step_takes_at_least_as_long_as_the_device_needs_for_a_batch(self):
        # A loaded machine makes it longer, and nothing makes it shorter.
        job = self.write("emulated.toml", """
schema = 1
[job]
name = "plan"
[roles.worker]
count = 4
[roles.server]
count = 2
[data]
format = "index"
records = 20000
[batch]
global = 64
[trainer]
model = "emulated"
sync = "ps-bsp"
[emulated]
noise = 0
[[emulated.device]]
class = "any"
flat = "20ms"
flat_until = 8
per_sample = "2ms"
""")
        known = self.check(self.plan(job))
        self.assertEqual(set(known), {"allreduce", "ps-bsp", "ps-ssp", "ps-asp"})
        for name, p in known.items():
            self.assertGreater(p["compute_seconds"], 0.0355, name)
            self.assertGreater(p["step_seconds"], 0.0355, name)

    def test_a_job_of_another_program_is_refused_and_its_run_tells_of_its_own_way(self):
        job = self.write("own.toml", JOB.format(workers=1, more='command = ["/bin/true"]', trainer=""))
        refused = self.antdt("plan", job)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("the workers of this job run true", refused.stderr)
        self.assertIn("antdt plan --from RUN", refused.stderr)

        run = self.run_job(self.job())
        self.assert_done(run)
        plan = self.plan("--from", run.dir)
        known = self.check(plan)
        self.assertEqual(set(known), {"allreduce"})
        seconds = run.summary["training_seconds"] / (ROWS / 256)
        self.assertAlmostEqual(known["allreduce"]["step_seconds"], seconds, places=6)

    def test_a_job_takes_what_is_recommended_and_keeps_it(self):
        job = self.job(more="[roles.server]\ncount = 1", trainer='sync = "auto"')
        dry = self.antdt("run", job, "--dry-run")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertIn('sync = "auto"', dry.stdout)
        run = self.run_job(job, "--set", "job.epochs=2")
        self.assert_done(run)
        self.assert_once(run, 2, ROWS)
        plan = json.loads((run.dir / "plan.json").read_text())
        chosen = plan["recommended"]
        config = json.loads((run.dir / "job.json").read_text())
        self.assertEqual(config["trainer"]["sync"], chosen["sync"])
        self.assertEqual(config["roles"]["server"]["count"], chosen["servers"])
        self.assertEqual(len(run.summary.get("servers", [])), chosen["servers"])
        self.assertIn("trainer.sync = \"auto\": trying", run.out)
        self.assertIn("chosen in", run.out)
        self.assert_nothing_left()

    def test_a_simulation_wants_the_way_named(self):
        refused = self.antdt("simulate", self.job(trainer='sync = "auto"'))
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("--set trainer.sync=", refused.stderr)


if __name__ == "__main__":
    unittest.main()
