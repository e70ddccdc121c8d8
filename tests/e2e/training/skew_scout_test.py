"""The solution skew-scout: the threshold of updates between domains (trainer.sync = "gaia") follows what
replicas lose in other domains, whoever is killed meanwhile."""

import random
import re
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import Run, needs_trainer

SIDE, LABELS, RECORDS, EPOCHS = 12, 10, 8000, 3
JOB = """
schema = 1
[job]
name = "skew"
epochs = {epochs}
seed = 3
[roles.worker]
count = 4
[data]
format = "idx"
pin = "domain"
paths = ["{directory}/a-images", "{directory}/b-images"]
labels = ["{directory}/a-labels", "{directory}/b-labels"]
[batch]
global = 64
[trainer]
model = "mlp"
hidden = [32]
sync = "gaia"
optimizer = "sgd"
lr = 0.1
momentum = 0.9
gaia = {{ threshold = 0.2, whole_every = 100000 }}
[control]
solution = "skew-scout"
[control.skew_scout]
every = 10
[failure]
budgets = {{ signal = 100 }}
[[domain]]
name = "a"
workers = ["w0", "w1"]
data = ["{directory}/a-images"]
[[domain]]
name = "b"
workers = ["w2", "w3"]
data = ["{directory}/b-images"]
"""


def write_images(directory, name, labels, rng, templates):
    """Images of these labels: a template each, with noise."""
    images = bytearray()
    drawn = [rng.choice(labels) for _ in range(RECORDS // 2)]
    for label in drawn:
        images += bytes(min(255, max(0, pixel + rng.randint(-60, 60))) for pixel in templates[label])
    count = len(drawn).to_bytes(4, "big")
    side = SIDE.to_bytes(4, "big")
    (directory / f"{name}-images").write_bytes(b"\0\0\x08\x03" + count + side + side + images)
    (directory / f"{name}-labels").write_bytes(b"\0\0\x08\x01" + count + bytes(drawn))


@needs_trainer
class SkewScout(tally.TallyTest):
    def job(self, epochs=EPOCHS, extra="", divided=True):
        rng = random.Random(5)
        templates = [[rng.randint(0, 255) for _ in range(SIDE * SIDE)] for _ in range(LABELS)]
        every = list(range(LABELS))
        for name, own in (("a", every[:LABELS // 2]), ("b", every[LABELS // 2:])):
            write_images(self.dir, name, own if divided else every, rng, templates)
        return self.write("job.toml", JOB.format(directory=self.dir, epochs=epochs) + extra)

    @staticmethod
    def changes(status):
        return [a for a in status["actions"] if (a["kind"], a["outcome"]) == ("set-sync", "applied")]

    def assert_as_the_actions_say(self, status):
        """The threshold in force is that of the last action."""
        done = self.changes(status)
        last = re.search(r"-> ([0-9.e-]+):", done[-1]["reason"]).group(1)
        self.assertEqual(f"{status['update_threshold']['in_force']:.4g}", last)
        self.assertEqual(status["update_threshold"]["of_job"], 0.2)

    def await_threshold(self, run_dir, incarnation):
        return self.await_status(
            run_dir, lambda s: s["incarnation"] == incarnation and s["state"] == "training"
            and s["samples_per_second"] > 0 and self.changes(s),
            60, f"incarnation {incarnation} trains with another threshold")

    def test_divided_labels_tighten_it_and_it_survives_the_job_daemon_and_workers(self):
        process, run_dir = self.start_job(
            self.job(epochs=8, extra='[[inject]]\nworkers = ["*"]\ndelay = "60ms"\n'))
        for incarnation in (1, 2):
            self.assert_as_the_actions_say(self.await_threshold(run_dir, incarnation))
            self.kill(self.jobd_pid(run_dir))
        before = self.await_threshold(run_dir, 3)
        self.assert_as_the_actions_say(before)
        for worker in before["workers"]:
            if worker["id"] in ("w1", "w2"):
                self.kill(worker["pid"])
        self.await_status(
            run_dir, lambda s: s["generation"] > before["generation"] and s["state"] == "training"
            and sum(w["rank"] is not None for w in s["workers"]) == 4, 60, "all train again")
        self.assert_as_the_actions_say(self.await_threshold(run_dir, 3))
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, self.why(out, err, run_dir))
        resumed = self.antdt("run", "--resume", run_dir)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        run = Run(resumed, run_dir)
        self.assert_once(run, 8, RECORDS)
        self.assert_as_the_actions_say(run.summary)
        self.assertIn("threshold of updates between domains: ", resumed.stdout)

    def test_people_read_what_visits_found_and_why_it_changed(self):
        run = self.run_job(self.job())
        self.assert_done(run)
        self.assert_once(run, EPOCHS, RECORDS)
        found = run.summary["update_threshold"]
        self.assert_as_the_actions_say(run.summary)
        self.assertGreater(found["visit"]["step"], 0)
        self.assertLess(found["visit"]["bytes_share"], 1)
        reasons = [a["reason"] for a in run.summary["actions"]]
        self.assertRegex(reasons[0], r"threshold 0.2 -> 0.1: replicas did \d+\.\d% worse on "
                                     r"other domains' records, with \d+\.\d% of the bytes")
        for words in (("explain", run.dir), ("status", run.dir)):
            said = self.antdt(*words)
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertIn("set-sync", said.stdout)

    def test_alike_data_leave_it_and_it_may_be_looser(self):
        run = self.run_job(self.job(divided=False))
        self.assert_done(run)
        self.assertGreaterEqual(run.summary["update_threshold"]["in_force"], 0.2)

    def test_advice_changes_nothing(self):
        run = self.run_job(self.job(epochs=1), "--set", "control.mode=advise")
        self.assert_done(run)
        self.assertEqual(run.summary["update_threshold"]["in_force"], 0.2)
        self.assertEqual({a["outcome"] for a in run.summary["actions"]}, {"advised"})

    def test_it_is_refused_where_there_is_no_threshold(self):
        done = self.antdt("run", self.job(), "--set", "trainer.sync=allreduce")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("write sync = \"gaia\", or another solution", done.stderr)


if __name__ == "__main__":
    unittest.main()
