"""`antdt data which`: the records of each step, through a kill and a change of size."""

import array
import json
import sys
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import await_true, needs_trainer

RECORDS = 12_000
EPOCHS = 2
BATCH = 64


@needs_trainer
class Which(tally.TallyTest):
    def which(self, run_dir, step):
        done = self.antdt("data", "which", run_dir, "--step", step, "--json")
        return (done.returncode, json.loads(done.stdout) if done.stdout else done.stderr)

    def all_steps(self, run_dir):
        """The records of each step of an ended run, by number."""
        found = {}
        while True:
            code, answer = self.which(run_dir, len(found) + 1)
            if code == 2:  # no such step any more
                self.assertIn(f"the last one is {len(found)}", answer)
                return found
            self.assertEqual(code, 0, answer)
            found[len(found) + 1] = answer

    def records_of(self, step):
        return [r for worker in step["workers"] for r in worker["records"]]

    def assert_each_record_once_an_epoch(self, steps):
        epochs = {}
        for step in steps.values():
            records = self.records_of(step)
            self.assertEqual(len(records), step["records_total"])
            self.assertEqual(step["unknown"], 0)
            self.assertIsNone(step["undone_by"])
            self.assertLessEqual(len(records), BATCH, step["step"])
            if records:
                epochs.setdefault(step["epoch"], []).extend(records)
        self.assertEqual(sorted(epochs), list(range(EPOCHS)))
        for epoch, records in epochs.items():
            self.assertEqual(sorted(records), list(range(RECORDS)), f"epoch {epoch}")

    def checkpoints(self, run_dir):
        """The step and the tally of each checkpoint that exists now."""
        found = {}
        for path in (run_dir / "checkpoints").iterdir():
            if not path.name.startswith("s"):
                continue
            values = array.array("f")
            try:
                values.frombytes((path / "tally.f32").read_bytes())
            except OSError:
                continue  # an old one that is being removed
            if sys.byteorder == "big":
                values.byteswap()
            found[int(path.name.split("-")[0][1:])] = values
        return found

    def assert_models_agree(self, steps, models):
        """A checkpoint's model contains exactly the records of the steps up to its own."""
        tally_of = [0] * RECORDS
        checked = 0
        for number in sorted(steps):
            for record in self.records_of(steps[number]):
                tally_of[record] += 1
            if number in models:
                self.assertEqual(list(models[number]), tally_of, f"step {number}")
                checked += 1
        self.assertEqual(checked, len(models))

    def test_every_step_is_known_through_a_kill_and_other_sizes(self):
        # Slow enough to be still training at the last resize, however long the commands take.
        job = self.write("job.toml", tally.job(
            records=RECORDS, epochs=EPOCHS, batch=BATCH, delay="40ms",
            extra='[checkpoint]\nevery = "1s"\nkeep = 1000\n'))
        process, run_dir = self.start_job(job)
        status = self.await_training(run_dir, samples=1000)
        # Asked while it runs: the history is about a second behind.
        await_true(lambda: self.which(run_dir, 1)[0] == 0, 60, "the first step is written down")
        by_rank = {w["rank"]: w for w in status["workers"]}
        self.kill(by_rank[0]["pid"])  # the one that tells of the steps
        self.await_training(run_dir, samples=status["samples_done"] + 1500)
        self.kill(self.jobd_pid(run_dir))
        status = self.await_training(run_dir, samples=RECORDS // 3)
        self.assertEqual(self.antdt("resize", run_dir, 2).returncode, 0)
        self.await_status(run_dir, lambda s: s["state"] == "training" and
                          len([w for w in s["workers"] if w["rank"] is not None]) == 2, 60,
                          "two workers")
        self.await_training(run_dir, samples=RECORDS // 2)
        self.assertEqual(self.antdt("resize", run_dir, 5).returncode, 0)
        self.finish(process, run_dir, timeout=300)
        steps = self.all_steps(run_dir)
        self.assert_each_record_once_an_epoch(steps)
        models = self.checkpoints(run_dir)
        self.assertGreater(len(models), 1)
        self.assert_models_agree(steps, models)
        sizes = {len(s["workers"]) for s in steps.values()}
        self.assertGreaterEqual(sizes, {2, 4})
        full = [s for s in steps.values() if s["records_total"] == BATCH]
        self.assertTrue(full)
        self.assert_table(run_dir, full[0])
        self.assert_closing_step(run_dir, steps)
        rows = (run_dir / "history.db").stat().st_size
        print(f"{len(steps)} steps, history.db {rows} bytes", flush=True)
        self.assert_nothing_left()

    def assert_table(self, run_dir, step):
        done = self.antdt("data", "which", run_dir, "--step", step["step"])
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0].split(), ["worker", "epoch", "shard", "records"])
        self.assertIn(f"step {step['step']}: {BATCH} records", lines[-1])
        named = []
        for line in lines[1:-1]:
            for part in line.split()[3:]:
                first, _, last = part.partition("-")
                named.extend(range(int(first), int(last or first) + 1))
        self.assertEqual(sorted(named), sorted(self.records_of(step)))

    def assert_closing_step(self, run_dir, steps):
        closing = max(steps)
        self.assertEqual(steps[closing]["records_total"], 0)
        done = self.antdt("data", "which", run_dir, "--step", closing)
        self.assertEqual(done.returncode, 0)
        self.assertIn("trained no record", done.stdout)

    def test_steps_after_a_restored_checkpoint_are_of_a_new_lineage(self):
        job = self.write("job.toml", tally.job(
            workers=2, records=RECORDS, epochs=1, batch=BATCH, delay="15ms",
            extra='[checkpoint]\nevery = "1s"\nkeep = 1000\n'))
        process, run_dir = self.start_job(job)
        status = self.await_training(run_dir, samples=RECORDS // 4)
        await_true(lambda: self.checkpoints(run_dir), 60, "a checkpoint")
        for worker in status["workers"]:
            self.kill(worker["pid"])
        summary = self.finish(process, run_dir, timeout=300)
        self.assertGreater(summary["lineages"], 1)
        steps = self.all_steps(run_dir)
        self.assertGreater(max(s["lineage"] for s in steps.values()), 1)
        self.assertEqual(steps[1]["lineage"], 1)
        models = self.checkpoints(run_dir)
        newest = {step: model for step, model in models.items() if step == max(models)}
        self.assert_models_agree(steps, newest)
        self.assertEqual(sorted(r for s in steps.values() for r in self.records_of(s)),
                         list(range(RECORDS)))

    def test_a_program_that_reads_its_data_by_itself_has_no_steps(self):
        job = self.write("job.toml", """
schema = 1
[job]
name = "own"
[roles.worker]
count = 1
command = ["sh", "-c", "exit 0"]
protocol = "exec"
""")
        run = self.run_job(job)
        self.assertEqual(run.code, 0, run.explain())
        code, message = self.which(run.dir, 1)
        self.assertEqual(code, 6, message)
        self.assertIn("reads its data by itself", message)

    def test_a_lost_or_damaged_history_is_reported_and_harmless(self):
        job = self.write("job.toml", tally.job(workers=1, records=500, epochs=1, batch=BATCH))
        run = self.run_job(job)
        self.assertEqual(run.code, 0, run.explain())
        self.assertEqual(self.which(run.dir, 1)[0], 0)
        self.assertEqual(self.which(run.dir, 0)[0], 2)
        for name in ("history.db-wal", "history.db-shm"):
            (run.dir / name).unlink(missing_ok=True)
        (run.dir / "history.db").write_text("nothing of the kind")
        code, message = self.which(run.dir, 1)
        self.assertEqual(code, 1, message)
        self.assertIn("history.db", message)
        (run.dir / "history.db").unlink()
        code, message = self.which(run.dir, 1)
        self.assertEqual(code, 6, message)
        self.assertIn("no step", message)
        self.assertEqual(self.antdt("data", "audit", run.dir).returncode, 0)


if __name__ == "__main__":
    unittest.main()
