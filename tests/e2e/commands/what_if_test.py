"""The bill of a run, what other solutions would have made of it, and jobs simulated at the speeds
that a run measured, or that are measured for that. Real runs; bench/predictions/what_if_vs_real.py compares the
predictions with real runs."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import needs_trainer
from hosts import Hosts

JOB = """
schema = 1
[job]
name = "what-if"
seed = 5
[roles.worker]
count = {workers}
{places}
[data]
format = "index"
records = {records}
[batch]
global = {batch}
adjust = "size"
[control]
solution = "none"
transient_window = "1s"
persistent_window = "5s"
[trainer]
model = "emulated"
sync = "{sync}"
[emulated]
noise = 0.02
parameters = 64
[[emulated.device]]
class = "d"
flat = "4ms"
flat_until = 4
per_sample = "1ms"
[[inject]]
{slow}
slowdown = 3.0
"""
# Half of a step, and more, is what its messages take.
TALLY = """
schema = 1
[job]
name = "what-if"
seed = 5
[roles.worker]
count = 4
command = ["antdt-trainer"]
[data]
format = "index"
records = 9600
[batch]
global = 64
adjust = "size"
[trainer]
model = "{model}"
sync = "{sync}"
[control]
solution = "none"
{more}
[[inject]]
workers = ["w0", "w1", "w2"]
delay = "10ms"
[[inject]]
workers = ["w3"]
delay = "20ms"
"""
SERVERS = "[roles.server]\ncount = 2\n"


def job(workers=4, places="", records=6400, batch=64, sync="allreduce", slow='workers = ["w3"]'):
    return JOB.format(workers=workers, places=places, records=records, batch=batch, sync=sync, slow=slow)


@needs_trainer
class WhatIf(Hosts):
    def recorded(self, text):
        run = self.run_job(self.write("job.toml", text))
        self.assertEqual(run.code, 0, run.explain())
        return run

    def json_of(self, *command):
        done = self.antdt(*command, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def assert_adds_up(self, bill, summary):
        """Every part of the bill is a figure of the summary."""
        lost = dict.fromkeys(summary["lost_time"], 0.0)
        for charge in bill["charges"]:
            self.assertGreater(charge["seconds"], 0)
            lost[charge["part"]] += charge["seconds"]
        for part, seconds in summary["lost_time"].items():
            if part != "compute":
                self.assertAlmostEqual(lost[part], seconds, places=6, msg=part)
        self.assertAlmostEqual(bill["useful_seconds"] + lost["compute"], summary["lost_time"]["compute"],
                               places=6)
        self.assertAlmostEqual(bill["total_seconds"], sum(summary["lost_time"].values()), places=6)
        self.assertAlmostEqual(bill["useful_seconds"] + bill["lost_seconds"], bill["total_seconds"],
                               places=6)

    @staticmethod
    def waited_for(bill):
        """The largest charge for what workers waited."""
        return next(c for c in bill["charges"] if c["part"] == "collective_wait")

    def alternatives(self, run, within=0.1):
        found = self.json_of("replay", run.dir)
        self.assertEqual(found["what_if"], self.json_of("report", run.dir)["what_if"])
        self.assertEqual(found["job"], run.summary["job"])
        self.assert_adds_up(found["bill"], run.summary)
        as_it_was = [a for a in found["what_if"] if a["as_it_was"]]
        self.assertEqual([a["solution"] for a in as_it_was], ["none"])
        # The same decisions at the same speeds take as long as the run did.
        measured = run.summary["training_seconds"]
        self.assertAlmostEqual(as_it_was[0]["job_seconds"], measured, delta=within * measured)
        return {(a["solution"], *a["without"]): a for a in found["what_if"]}

    def test_a_run_says_who_lost_its_time_and_what_would_have_saved_it(self):
        run = self.recorded(job())
        bill = self.json_of("report", run.dir)["bill"]
        self.assert_adds_up(bill, run.summary)
        worst = self.waited_for(bill)
        self.assertEqual((worst["culprit"], worst["remedy"]), ("w3", "none"))
        self.assertIn("slow computing", worst["cause"])
        page = self.antdt("report", run.dir)
        self.assertEqual(page.returncode, 0, page.stderr)
        html = (run.dir / "report.html").read_text()
        self.assertIn("Where the workers' time went", html)
        self.assertRegex(html, r"<p>recommended: ")

        found = self.alternatives(run)
        self.assertEqual(set(found), {("none",), ("nd",), ("dd",), ("none", "w3"), ("nd", "w3")})
        self.assertGreater(found[("nd",)]["saved_seconds"], 1)
        self.assertEqual(found[("none", "w3")]["workers"], 3)
        self.assertEqual(sum(a["recommended"] for a in found.values()), 1)
        text = self.antdt("replay", run.dir)
        self.assertIn("recommended: ", text.stdout)
        self.assertRegex(text.stdout, r"w3 .*slow computing")
        self.assertEqual(text.stdout, self.antdt("replay", run.dir).stdout, "it is deterministic")

        once = found[("none",)]["job_seconds"]
        twice = self.json_of("simulate", "--from", run.dir, "--set", "job.epochs=2")[0]
        self.assertAlmostEqual(twice["job_seconds"], 2 * once, delta=0.1 * 2 * once)
        larger = self.json_of("simulate", "--from", run.dir, "--workers", "8")[0]
        self.assertEqual(larger["workers"], 8)
        self.assertAlmostEqual(larger["job_seconds"], once, delta=0.1 * once)

        refused = self.antdt("simulate", "--from", run.dir, "--set", "trainer.sync=ps-bsp", "--set",
                             "roles.server.count=1")
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertIn('says nothing of "ps-bsp"', refused.stderr)
        for wrong in ((), ("job.toml", "--from", run.dir)):
            refused = self.antdt("simulate", *wrong)
            self.assertEqual(refused.returncode, 2, refused.stdout)
            self.assertIn("--from", refused.stderr)

    def test_what_rows_on_servers_and_messages_between_domains_cost_is_known_from_the_run(self):
        for sync, model, more in (
                ("hybrid", "tally3", SERVERS + '[[inject]]\nworkers = ["s0"]\nlatency = "5ms"\n'),
                ("gaia", "tally", jobs.domains(east=["w0", "w1"], west=["w2", "w3"]) +
                 '[[inject]]\ndomain = "east"\nto_domain = "west"\nboth_ways = true\nlatency = "10ms"\n')):
            with self.subTest(sync=sync):
                run = self.recorded(TALLY.format(sync=sync, model=model, more=more))
                # What an epoch ends with, and measurements of links, are in no step.
                found = self.alternatives(run, within=0.2)
                self.assertEqual(set(found), {("none",), ("nd",), ("dd",), ("none", "w3"), ("nd", "w3")})
                refused = self.antdt("simulate", "--from", run.dir, "--set", "trainer.sync=ds-sync", "--set",
                                     "roles.server.count=0", "--set", "trainer.model=tally", "--set", "inject=[]")
                self.assertEqual(refused.returncode, 2, refused.stdout)
                self.assertIn('says nothing of "ds-sync"', refused.stderr)

    def test_a_job_with_servers_could_have_had_backup_workers(self):
        run = self.recorded(job(places=SERVERS, sync="ps-bsp"))
        found = self.alternatives(run)
        self.assertEqual(set(found), {("none",), ("nd",), ("backup-workers",), ("none", "w3"), ("nd", "w3")})
        self.assertGreater(found[("backup-workers",)]["saved_seconds"], 0)
        without_a_run = self.json_of("simulate", "job.toml")[0]
        measured = run.summary["training_seconds"]
        # A busy machine can only make the real run longer.
        self.assertLess(without_a_run["job_seconds"], 1.1 * measured)
        self.assertGreater(without_a_run["job_seconds"], 0.5 * measured)

    def test_a_slow_host_is_left_out_as_a_whole(self):
        keys = self.keys("keys")
        hosts = [self.agent(name, keys) for name in ("a", "b")]
        run = self.recorded(job(places=self.cluster(hosts, keys), slow='host = "b"'))
        found = self.alternatives(run)
        left_out = found[("none", "w2", "w3")]
        self.assertEqual((left_out["without_host"], left_out["workers"]), ("b", 2))
        self.assertGreater(left_out["saved_seconds"], 0)
        self.assertEqual(self.waited_for(self.json_of("report", run.dir)["bill"])["host"], "b")

    def test_real_data_and_real_devices_are_measured_first(self):
        data = self.antdt("data", "synth", "criteo", "--rows", "50000", "--seed", "7", "--out", "data")
        self.assertEqual(data.returncode, 0, data.stderr)
        self.write("real.toml", f"""
schema = 1
[job]
name = "real"
epochs = 100
[roles.worker]
count = 2
[data]
format = "criteo"
paths = ["{self.dir}/data/train.tsv"]
[batch]
global = 1024
[trainer]
model = "lr"
threads = 1
""")
        done = self.antdt("simulate", "real.toml", "--json", "--solution", "none", "--measure", "8s")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("measuring real.toml: it trains for at most 8s", done.stderr)
        line = json.loads(done.stdout)[0]
        self.assertEqual((line["solution"], line["workers"]), ("none", 2))
        self.assertGreater(line["job_seconds"], 0)
        # What it measured in is removed.
        self.assertEqual(list(self.temporary.iterdir()), [])

        (self.dir / "data" / "train.tsv").write_text("not a click log\n")
        done = self.antdt("simulate", "real.toml", "--measure", "8s")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("real.toml could not be measured, because it does not train", done.stderr)
        self.assertIn("train.tsv:1", done.stderr)
        self.assertNotIn("neither a run directory", done.stderr)
        for wrong in (("--at-most", "10"), ("--solution", "foo"), ("--solution", "command")):
            refused = self.antdt("simulate", "real.toml", *wrong)
            self.assertEqual(refused.returncode, 2, refused.stdout)
            self.assertIn(wrong[1], refused.stderr)
            self.assertNotIn("measuring", refused.stderr)


if __name__ == "__main__":
    unittest.main()
