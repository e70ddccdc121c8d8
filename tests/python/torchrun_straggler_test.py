"""An unmodified script is measured, and the rank that a fault injection slows down is named. The
test runs alone on the machine, because a process that waits for a core is slow, too.
"""
import json
import unittest

import python_jobs
from harness import await_true
from plain_jobs import PlainJobs


@python_jobs.needs_torch
class TorchrunStraggler(PlainJobs):
    def test_a_script_is_measured_and_a_slowed_rank_is_named(self):
        # In a window so long, the machine's own pauses of a second make nobody slow.
        job = self.script(windows=("6s", "20s"), PLAIN_STEPS="100000")
        process, run_dir = self.start_job(job)
        await_true(lambda: self.status(run_dir).get("step", 0) > 30, 120, "steps")
        done = self.antdt("inject", run_dir, 'workers=["w1"]', "slowdown=4")
        self.assertEqual(done.returncode, 0, done.stderr)
        await_true(lambda: self.verdicts(run_dir), 60, "a verdict")
        self.assertEqual(set(self.verdicts(run_dir)), {"w1"})
        # The times are means over the last seconds, and the verdict comes as soon as w1's have risen:
        # the steps in which it was slow and w0 waited for it may be few by then.
        times = {}

        def w1_is_slow_and_w0_waits():
            times.update((w["id"], w["step_time"]) for w in self.status(run_dir)["workers"])
            return (times["w1"]["compute_ms"] > 2 * times["w0"]["compute_ms"] and
                    times["w0"]["wait_ms"] > 2 * times["w1"]["wait_ms"])

        await_true(w1_is_slow_and_w0_waits, 30, ("w1 is slow, and w0 waits for it", times))
        status = self.status(run_dir)
        self.assertEqual(sorted(w["rank"] for w in status["workers"]), [0, 1, 2])
        self.assertTrue(status["traced"]["samples_known"])
        self.assertGreater(status["samples_per_second"], 0)
        self.assertEqual(status["samples_done"] % 32, 0)
        text = self.antdt("status", run_dir).stdout
        self.assertIn("compute ms", text)
        self.assertIn("3 ranks traced", text)
        self.antdt("stop", run_dir)
        out, err = process.communicate(timeout=60)
        spent = json.loads((run_dir / "summary.json").read_text())["lost_time"]
        self.assertGreater(spent["compute"], 0, err)
        self.assertGreater(spent["collective_wait"], 0)
        self.assertLess(spent["other"], sum(spent.values()) / 2)
        named = [e for e in (run_dir / "events.jsonl").read_text().splitlines()
                 if '"verdict"' in e]
        self.assertTrue(all("w1" in e for e in named), "a victim never")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
