"""The user's own programs that decide on stragglers: the example, and one that does everything
wrong. Also replays such a run under another solution."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import SOURCE, EndToEnd, await_true, needs_trainer

EXAMPLES = SOURCE / "examples" / "solutions"
STEPS = 20_000  # more than anybody waits for: what is looked for ends the run


def job(command):
    """Two workers of which one needs eight times as long; both times are much longer than the
    delays of a busy machine."""
    return f"""
schema = 1
[job]
name = "own"
seed = 5
[roles.worker]
count = 2
[data]
format = "index"
records = {STEPS * 16}
[batch]
global = 16
[control]
solution = "command"
command = {json.dumps(command)}
transient_window = "500ms"
persistent_window = "3s"
[trainer]
model = "emulated"
[emulated]
parameters = 8
[[emulated.device]]
class = "slow"
workers = ["w1"]
flat = "6ms"
flat_until = 1
per_sample = "6ms"
[[emulated.device]]
class = "fast"
flat = "750us"
flat_until = 1
per_sample = "750us"
"""


@needs_trainer
class OwnSolution(EndToEnd):
    def run_until(self, command, happened):
        """Its run directory and events, once `happened(events)`; the job is stopped then."""
        process, run_dir = self.start_job(self.write("job.toml", job(command)))

        def events():
            path = run_dir / "events.jsonl"
            lines = path.read_text().splitlines(keepends=True) if path.exists() else []
            return [json.loads(line) for line in lines if line.endswith("\n")]

        await_true(lambda: process.poll() is not None or happened(events()), 120,
                   "what the program was to cause")
        stopped = self.antdt("stop", run_dir)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        await_true(lambda: (run_dir / "summary.json").exists(), 60, "the summary")
        process.communicate(timeout=60)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["state"], "stopped", summary)
        self.assertEqual(summary["samples_repeated"] + summary["samples_lost"], 0, summary)
        return run_dir, summary, events()

    def replay(self, run_dir):
        done = self.antdt("replay", run_dir, "--json", "--solution", "none", "--solution", "nd")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {line["solution"]: line for line in json.loads(done.stdout)}

    def test_the_example_moves_the_batches_and_the_run_can_be_replayed(self):
        # The series is read after the end, and includes a second in which the batches were equal.
        run_dir, summary, _ = self.run_until(
            ["python3", str(EXAMPLES / "proportional.py")],
            lambda events: any(e["kind"] == "action" and e["outcome"] == "applied"
                               for e in events))
        moved = [a for a in summary["actions"] if a["kind"] == "adjust-batch"]
        self.assertTrue(moved, summary["actions"])
        self.assertEqual(moved[0]["outcome"], "applied")
        self.assertEqual(moved[0]["target"], "w1")
        self.assertIn("a step takes", moved[0]["reason"])

        found = self.replay(run_dir)
        self.assertEqual(set(found), {"none", "nd"})
        for line in found.values():
            self.assertEqual(line["workers"], 2)
            self.assertEqual(line["records_lost"] + line["records_repeated"], 0)
            # Speeds change within steps, which begin at other moments in both schedules (ideal.h).
            self.assertGreater(line["job_seconds"], 0.99 * line["ideal_seconds"])
        self.assertEqual(found["none"]["actions"], 0)
        self.assertGreaterEqual(found["nd"]["actions"], 1)
        # The gain depends on the machine, but one worker was certainly much slower.
        self.assertGreater(found["nd"]["speedup_over_none"], 1.1)
        self.assertEqual(found, self.replay(run_dir), "the same recording is the same replay")

    def test_a_program_that_does_everything_wrong_harms_nothing(self):
        wrong = self.write("wrong.sh", """
n=$(cat "$0.count" 2>/dev/null || echo 0)
echo $((n + 1)) > "$0.count"
echo "attempt $n" >&2
read view
case $n in
0) echo 'hello' ;;
1) exit 7 ;;
*) echo '{"view":1,"actions":[{"kind":"evict","worker":"w99"}]}' ;;
esac
""")
        run_dir, summary, events = self.run_until(
            ["sh", str(wrong)],
            lambda events: sum(e["kind"] == "solution" for e in events) >= 3)
        self.assertEqual([a for a in summary["actions"] if a["outcome"] != "asked"], [])
        said = [e["text"] for e in events if e["kind"] == "solution"]
        self.assertIn("no JSON object on one line: hello", said[0])
        self.assertIn("solution.log", said[0])
        self.assertIn("ended with code 7", said[1])
        self.assertIn("one of the view's workers", said[2])
        self.assertIn("attempt 0", (run_dir / "solution.log").read_text())

    def test_a_missing_program_is_reported_before_anything_starts(self):
        run = self.run_job(self.write("job.toml", job(["./none-of-that"])))
        self.assertEqual(run.code, 2, run.explain())
        self.assertIn("control.command", run.err)


if __name__ == "__main__":
    unittest.main()
