"""What the tests of this folder share: a job that runs until it is stopped, and its events."""

import json
import re

import shared  # noqa: F401 (finds what follows)
from harness import EndToEnd, await_true

STEPS = 200_000  # more than anybody waits for: what is looked for ends the run


def job(extra):
    """Two workers that compute for a millisecond or two a step, on emulated devices."""
    return f"""
schema = 1
[job]
name = "watched"
seed = 5
[roles.worker]
count = 2
[data]
format = "index"
records = {STEPS * 16}
[batch]
global = 16
[control]
solution = "none"
transient_window = "500ms"
persistent_window = "3s"
[trainer]
model = "emulated"
[emulated]
parameters = 8
[[emulated.device]]
class = "even"
flat = "2ms"
flat_until = 8
{extra}
"""


class Watched(EndToEnd):
    """A running job whose events are read as they come."""

    def start(self, extra):
        self.process, self.run_dir = self.start_job(self.write("job.toml", job(extra)))
        return self.run_dir

    def events(self, kind=None):
        path = self.run_dir / "events.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [e for e in events if kind in (None, e["kind"])]

    def await_event(self, kind, seconds=60):
        def there():
            self.assertIsNone(self.process.poll(), "the job ended")
            return self.events(kind)
        return await_true(there, seconds, f"an event {kind}")[0]

    def address(self):
        """Where the job's metrics are, with the port that was chosen."""
        def said():
            self.assertIsNone(self.process.poll(), "the job ended")
            found = [re.search(r"http://(\S+)/metrics", e["text"]) for e in self.events("metrics")]
            return [m.group(1) for m in found if m]
        return await_true(said, 60, "where metrics are")[-1]

    def stop(self):
        """Stops the job in good order, and returns its summary."""
        stopped = self.antdt("stop", self.run_dir)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.process.communicate(timeout=60)
        summary = json.loads((self.run_dir / "summary.json").read_text())
        self.assertEqual(summary["state"], "stopped", summary)
        self.assertEqual(summary["samples_repeated"] + summary["samples_lost"], 0, summary)
        return summary
