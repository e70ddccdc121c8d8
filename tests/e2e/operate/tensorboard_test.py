"""The curves of a job are read with TensorBoard's own reader. scripts/install-tensorboard puts TensorBoard
into .deps/tensorboard where the network gives it."""

import json
import os
import pathlib
import signal
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import await_true, needs_trainer

PYTHON = pathlib.Path(__file__).resolve().parents[3] / ".deps/tensorboard/bin/python"
# Prints {tag: [[step, value], ...]}, each file of the directory read to its end.
READER = """
import json, sys
from tensorboard.backend.event_processing import event_accumulator
curves = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
curves.Reload()
print(json.dumps({tag: [[s.step, s.value] for s in curves.Scalars(tag)]
                  for tag in curves.Tags()["scalars"]}))
"""
RECORDS, EPOCHS = 6000, 3


@needs_trainer
@unittest.skipUnless(PYTHON.exists(), f"{PYTHON} is not there: scripts/install-tensorboard found no TensorBoard")
class TensorBoard(tally.TallyTest):
    def curves(self, run_dir):
        done = subprocess.run([PYTHON, "-c", READER, run_dir / "tensorboard"], capture_output=True,
                              text=True, timeout=120, env=dict(os.environ, PYTHONPATH=""))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_curves_are_read_also_when_the_job_daemon_is_started_again_and_the_run_resumed(self):
        job = self.write("job.toml", tally.job(workers=2, records=RECORDS, epochs=EPOCHS, delay="40ms",
                                               extra="[metrics]\ntensorboard = true\n"))
        process, run_dir = self.start_job(job)
        self.await_training(run_dir, samples=RECORDS)  # one epoch is over
        await_true(lambda: self.curves(run_dir).get("epoch/train_loss"), 60,
                   "the first epoch is in the file")
        os.kill(self.jobd_pid(run_dir), signal.SIGKILL)
        await_true(lambda: (self.status(run_dir) or {}).get("incarnation") == 2, 60,
                   "a job daemon was started again")
        stopped = self.antdt("stop", run_dir)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        process.communicate(timeout=60)
        resumed = self.antdt("run", "--resume", run_dir)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assert_exact(summary, run_dir, RECORDS, EPOCHS)
        self.assertEqual(len(list((run_dir / "tensorboard").iterdir())), summary["incarnations"])
        curves = self.curves(run_dir)
        epochs = [step for step, _ in curves["epoch/train_loss"]]
        self.assertEqual(sorted(set(epochs)), [1, 2, 3])
        self.assertLessEqual(len(epochs), 5, "only the newest epoch may be told again")
        self.assertTrue(curves["train/loss"], "while it trained")
        steps = [step for step, _ in curves["train/samples_per_second"]]
        self.assertEqual(steps, sorted(steps))
        self.assertEqual(steps[-1], summary["steps"])
        # On a busy machine nothing may be trained between two points.
        speeds = [value for _, value in curves["train/samples_per_second"]]
        self.assertTrue(all(value >= 0 for value in speeds) and max(speeds) > 0, speeds)


if __name__ == "__main__":
    unittest.main()
