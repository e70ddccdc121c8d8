"""A run that broke off, with three checkpoints."""

import json

import shared  # noqa: F401 (finds what follows)
import tally
from harness import await_true

RECORDS = 30000
EXTRA = '[checkpoint]\nevery = "500ms"\nkeep = 3\n'


class BrokenOff(tally.TallyTest):
    def broken_off(self):
        """The directory of a run whose processes were all killed, with three checkpoints
        and more trained after the last of them."""
        job = self.write("job.toml", tally.job(workers=3, records=RECORDS, delay="10ms",
                                               extra=EXTRA))
        process, run_dir = self.start_job(job)
        self.await_training(run_dir)
        await_true(lambda: len(self.checkpoints(run_dir)) == 3, 60, "three checkpoints")
        self.kill_all()
        process.communicate(timeout=30)
        return run_dir

    @staticmethod
    def checkpoints(run_dir):
        """The checkpoints, from the oldest to the newest."""
        return sorted((run_dir / "checkpoints").glob("s*/MANIFEST.json"),
                      key=lambda p: tally.order_of(p.parent))

    def events(self, run_dir, kind):
        lines = (run_dir / "events.jsonl").read_text().splitlines()
        return [e["text"] for e in map(json.loads, lines) if e["kind"] == kind]

    def resume(self, run_dir, *args):
        done = self.antdt("run", "--resume", run_dir, *args)
        self.assertEqual(done.returncode, 0, self.why(done.stdout, done.stderr, run_dir))
        return done, json.loads((run_dir / "summary.json").read_text())
