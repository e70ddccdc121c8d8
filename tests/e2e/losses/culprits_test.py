"""The worker that makes others wait is named with its cause: computing, data, a link and a bound on
CPU time, one after another in one job. All workers' steps are as long as the slowest's."""

import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import await_true, needs_trainer

JOB = """
schema = 1
[job]
name = "culprits"
seed = 3
[roles.worker]
count = 4
[data]
format = "index"
records = 100000000
[batch]
global = 64
[control]
solution = "none"
transient_window = "1s"
persistent_window = "30s"
[trainer]
model = "emulated"
[emulated]
parameters = 64
[[emulated.device]]
class = "any"
flat = "20ms"
flat_until = 16
"""
# The injections are so strong that a busy machine adds little to them.
CASES = (("w1", "slowdown=6", "compute"), ("w2", 'data_delay="120ms"', "data"),
         ("w3", 'latency="30ms"', "network"), ("w0", "throttle=0.15", "throttled"))


def worst(status):
    """The straggler of the highest severity and its cause, or None."""
    found = [w for w in status["workers"] if w["straggler"]]
    if not found:
        return None
    first = max(found, key=lambda w: w["straggler"]["severity"])
    return first["id"], first["straggler"]["cause"]


@needs_trainer
class Culprits(tally.TallyTest):
    def test_each_culprit_is_named_before_all_others_with_its_cause(self):
        process, run_dir = self.start_job(self.write("culprits.toml", JOB))
        self.await_training(run_dir)
        for culprit, rule, cause in CASES:
            injected = self.antdt("inject", run_dir, f'workers=["{culprit}"]', rule)
            self.assertEqual(injected.returncode, 0, injected.stderr)
            # The windows still contain earlier steps. Until they have passed, a worker that the
            # machine delayed for a moment may rank above the culprit.
            self.await_status(run_dir, lambda s, e=(culprit, cause): worst(s) == e, 60,
                              f"{culprit} named before all others, for {cause}")
            await_true(lambda w=culprit, c=cause: f"({c})" in self.antdt(
                "explain", run_dir, w).stdout, 30, f"explained that {culprit} is slow for {cause}")
            cleared = self.antdt("inject", run_dir, "--clear")
            self.assertEqual(cleared.returncode, 0, cleared.stderr)
            self.await_status(run_dir, lambda s, w=culprit: not any(
                v["straggler"] for v in s["workers"] if v["id"] == w), 60,
                f"{culprit} as fast as the others")
        self.antdt("stop", run_dir)
        process.communicate(timeout=60)
        events = (run_dir / "events.jsonl").read_text()
        self.assertIn('"kind":"verdict"', events.replace(" ", ""))


if __name__ == "__main__":
    unittest.main()
