"""Workers on different devices under AntDT-DD, with a real model. Each worker reports its device,
or job.toml names it. Micro-batches and accumulation follow the measured curves, and every record
counts once."""

import re
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import EndToEnd, needs_trainer

ROWS = 24000
BATCH = 128
MIDDLE, FAST = 24, 16  # samples that fit
# A worker's speed is set by a delay for each sample, which is much longer than the computation. The
# two slow workers report their own device.
DEVICES = f"""
[control]
solution = "dd"
transient_window = "500ms"
persistent_window = "5s"
[[device]]
class = "middle"
workers = ["w2"]
max_micro_batch = {MIDDLE}
[[device]]
class = "fast"
workers = ["w3"]
max_micro_batch = {FAST}
[[inject]]
workers = ["w0", "w1"]
delay_per_sample = "2ms"
[[inject]]
workers = ["w2"]
delay_per_sample = "800us"
[[inject]]
workers = ["w3"]
delay_per_sample = "500us"
"""


@needs_trainer
class Devices(EndToEnd):
    def test_unlike_devices_accumulate_by_their_curves(self):
        made = self.antdt("data", "synth", "criteo", "--rows", ROWS, "--seed", 5, "--out",
                          self.dir / "data")
        self.assertEqual(made.returncode, 0, made.stderr)
        job = self.write("job.toml", jobs.ctr(self.dir / "data" / "train.tsv",
                                              self.dir / "data" / "eval.tsv", workers=4,
                                              epochs=1, batch=BATCH, extra=DEVICES))
        run = self.run_job(job)
        self.assert_done(run)
        self.assert_once(run, 1, ROWS)
        workers, actions = run.summary["workers"], run.summary["actions"]
        own, alike, *others = [w["device"] for w in workers]
        self.assertRegex(own["class"], r"^cpu:.+ x1$")
        self.assertEqual(own["max_micro_batch"], 0)
        self.assertEqual(own, alike)
        self.assertEqual(others, [{"class": "middle", "max_micro_batch": MIDDLE},
                                  {"class": "fast", "max_micro_batch": FAST}])
        plans = [a["reason"] for a in actions
                 if a["kind"] == "adjust-batch" and a["outcome"] == "applied"]
        self.assertTrue(plans, actions)
        for plan in plans:
            for cls, most in (("middle", MIDDLE), ("fast", FAST)):
                (_, size), = self.parts(plan, cls)
                self.assertLessEqual(size, most, plan)
        # More than an equal part, of several micro-batches.
        (count, size), = self.parts(plans[-1], "fast")
        self.assertGreater(count, 1, plans)
        self.assertGreater(count * size, BATCH / 4, plans)
        samples = {w["id"]: w["samples"] for w in workers}
        self.assertGreater(samples["w3"], samples["w0"], plans)
        replayed = self.antdt("replay", run.dir, "--solution", "dd")
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        self.assertIn(f"w0, w1, w2, w3 said: {own['class']}", replayed.stdout)

    def parts(self, plan, cls):
        """The batch of each worker of a class: (micro-batches, samples of each)."""
        found = re.findall(rf"\d+ of {cls}: (\d+) x (\d+) samples", plan)
        return [(int(count), int(size)) for count, size in found]


if __name__ == "__main__":
    unittest.main()
