"""Workers on emulated devices: steps take the time of the devices' curves and of [[inject]], and
every record counts once under all faults of workers."""

import pathlib
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import needs_trainer

PARAMETERS = 64
# A step of 16 samples: 4, 10 and 16 ms.
DEVICES = """
[[emulated.device]]
class = "fast"
workers = ["w0", "w1"]
flat = "2ms"
flat_until = 8
per_sample = "250us"
[[emulated.device]]
class = "middle"
workers = ["w2", "w3", "w4"]
flat = "2ms"
per_sample = "500us"
[[emulated.device]]
class = "slow"
flat = "16ms"
flat_until = 16
per_sample = "1ms"
memory = 32
"""


def job(records, workers=8, devices=DEVICES, extra="", solution="none", adjust="both"):
    return f"""
schema = 1
[job]
name = "emulated"
seed = 5
[roles.worker]
count = {workers}
[data]
format = "index"
records = {records}
[batch]
global = {16 * workers}
adjust = "{adjust}"
[control]
solution = "{solution}"
transient_window = "1s"
persistent_window = "5s"
[trainer]
model = "emulated"
[emulated]
noise = 0.05
parameters = {PARAMETERS}
{devices}
{extra}
"""


@needs_trainer
class Emulated(tally.TallyTest):
    def run_emulated(self, name, text):
        run = self.run_job(self.write(name, text))
        self.assert_done(run)
        return run

    def assert_each_parameter(self, run, records):
        found = tally.counts(run.dir)
        expected = [float(len(range(p, records, PARAMETERS))) for p in range(PARAMETERS)]
        self.assertEqual(list(found), expected)

    # On a busy machine a worker may have had no records for a step, so the number of steps follows
    # from what it trained. A busy machine is never faster; a tenth is allowed for noise.
    def assert_paced(self, run, name, share_seconds):
        worker = next(w for w in run.summary["workers"] if w["id"] == name)
        least = 0.9 * worker["samples"] / 16 * share_seconds
        self.assertGreater(worker["samples"], 0)
        self.assertGreaterEqual(worker["lost_time"]["compute"], least)
        self.assertGreaterEqual(run.summary["epochs"][0]["seconds"], least)

    def test_a_step_takes_the_time_of_the_slowest_curve(self):
        steps = 150
        records = steps * 128
        run = self.run_emulated("plain.toml", job(records))
        self.assert_once(run, 1, records)
        self.assert_each_parameter(run, records)
        self.assert_paced(run, "w7", 0.016)
        compute = {w["id"]: w["lost_time"]["compute"] for w in run.summary["workers"]}
        for fast, slow in (("w0", "w2"), ("w2", "w7")):
            self.assertLess(compute[fast], compute[slow])

    def test_a_trace_is_replayed(self):
        trace = pathlib.Path(self.dir) / "trace.csv"
        rows = ["worker,time,batch_time_norm"]
        rows += [f"{w},{t},{50 if w == 0 else 150}" for t in (11, 1) for w in (0, 1)]
        trace.write_text("\n".join(rows) + "\n")
        steps = 120
        records = steps * 32
        device = '[[emulated.device]]\nclass = "any"\nflat = "5ms"\nflat_until = 16\n'
        # w1 needs 7.5 ms for what takes 2.5 ms of w0.
        inject = '[[inject]]\nworkers = ["*"]\ntrace = "trace.csv"\n'
        run = self.run_emulated("trace.toml", job(records, 2, device, inject))
        self.assert_once(run, 1, records)
        self.assert_paced(run, "w1", 0.0075)

    def test_a_worker_that_is_killed_comes_back(self):
        records = 120 * 32
        device = '[[emulated.device]]\nclass = "any"\nflat = "10ms"\nflat_until = 16\n'
        inject = '[[inject]]\nworkers = ["w1"]\nkill = true\nfrom = "500ms"\n'
        run = self.run_emulated("kill.toml", job(records, 2, device, inject))
        self.assert_once(run, 1, records)
        self.assert_each_parameter(run, records)
        attempts = {w["id"]: w["attempt"] for w in run.summary["workers"]}
        self.assertEqual(attempts, {"w0": 1, "w1": 2})

    def test_a_batch_that_does_not_fit_is_reported_before_it_is_tried(self):
        device = '[[emulated.device]]\nclass = "small"\nflat = "1ms"\nmemory = 8\n'
        run = self.run_job(self.write("small.toml", job(3200, 2, device, adjust="none")))
        self.assertNotEqual(run.code, 0)
        self.assertIn("w0 cannot hold micro-batches of 16 samples, 8 is its limit: let it "
                      "accumulate", run.out + run.err)
        self.assertIn("0 of 3,200 trained", run.out)

    def test_larger_batches_are_made_of_micro_batches_that_fit(self):
        device = '[[emulated.device]]\nclass = "small"\nflat = "1ms"\nmemory = 8\n'
        run = self.run_emulated("micro.toml", job(3200, 2, device))
        self.assert_once(run, 1, 3200)
        self.assert_each_parameter(run, 3200)

    def test_an_injection_into_a_running_job_takes_effect_and_is_recorded(self):
        device = '[[emulated.device]]\nclass = "any"\nflat = "10ms"\nflat_until = 16\n'
        records = 600 * 32
        process, run_dir = self.start_job(self.write("live.toml", job(records, 2, device)))
        self.await_training(run_dir)
        wrong = self.antdt("inject", run_dir, 'workers=["w7"]', "slowdown=3")
        self.assertEqual(wrong.returncode, 2, wrong.stderr)
        self.assertIn("'w7' is no worker of this job", wrong.stderr)
        slow = self.antdt("inject", run_dir, 'workers=["w1"]', "slowdown=3", "--duration", "60s")
        self.assertEqual(slow.returncode, 0, slow.stderr)

        def slowness(status):
            speed = {w["id"]: w.get("samples_per_second") or 0 for w in status["workers"]}
            return speed["w1"] > 0 and speed["w0"] > 1.5 * speed["w1"]
        self.await_status(run_dir, slowness, 60, "w1 slower than w0")
        killed = self.antdt("inject", run_dir, 'workers=["w1"]', "kill=true")
        self.assertEqual(killed.returncode, 0, killed.stderr)
        self.await_status(run_dir, lambda s: any(
            w["id"] == "w1" and w["attempt"] == 2 for w in s["workers"]), 60, "w1 started again")
        cleared = self.antdt("inject", run_dir, "--clear")
        self.assertEqual(cleared.returncode, 0, cleared.stderr)
        summary = self.finish(process, run_dir)
        said = [a["reason"] for a in summary["actions"] if a["kind"] == "inject"]
        self.assertEqual(len(said), 3, summary["actions"])
        self.assertIn('"slowdown":3.0', said[0])
        self.assertEqual(summary["samples_trained"], records)
        expected = [float(len(range(p, records, PARAMETERS))) for p in range(PARAMETERS)]
        self.assertEqual(list(tally.counts(run_dir)), expected)


if __name__ == "__main__":
    unittest.main()
