"""The files of a run are damaged. Nothing wrong is trained, a message says what to do, and training
goes on from the last complete checkpoint."""

import re
import unittest

import broken_off
import tally
from broken_off import RECORDS
from harness import needs_trainer


@needs_trainer
class Damage(broken_off.BrokenOff):
    @staticmethod
    def overwrite(path, begin, count):
        with open(path, "r+b") as file:
            file.seek(begin)
            file.write(b"\xff" * count)

    def test_a_damaged_journal_is_put_aside_and_the_newest_checkpoint_goes_on(self):
        run_dir = self.broken_off()
        old = max(tally.order_of(p.parent) for p in self.checkpoints(run_dir))
        for log in run_dir.glob("state.db-*"):
            log.unlink()
        self.overwrite(run_dir / "state.db", 0, 8192)
        damaged = (run_dir / "state.db").read_bytes()

        refused = self.antdt("run", "--resume", run_dir)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("journal cannot be read", refused.stderr)
        command = f"antdt run --resume {run_dir} --from-checkpoint"
        self.assertIn(command, refused.stderr)
        self.assertEqual((run_dir / "state.db").read_bytes(), damaged)
        audit = self.antdt("data", "audit", run_dir)
        self.assertEqual(audit.returncode, 7, audit.stdout + audit.stderr)
        self.assertIn("its journal cannot be read", audit.stderr)
        self.assertIn("file is not a database. ", audit.stderr)
        self.assertIn(command, audit.stderr)

        done, summary = self.resume(run_dir, "--from-checkpoint")
        self.assertIn(f"put aside as {run_dir}/state.db.aside-1", done.stdout)
        self.assertEqual((run_dir / "state.db.aside-1").read_bytes(), damaged)
        newest = f"s{old[1]:010}-l{old[0]}-"
        self.assertRegex(done.stdout, rf"training goes on from \S+/{newest}")
        self.assertRegex(self.events(run_dir, "restored")[-1], newest)
        self.assertRegex(self.events(run_dir, "operator")[-1], "asked by .*, from a checkpoint")
        self.assert_exact(summary, run_dir, RECORDS, 2)
        # All numbers are above those of before.
        self.assertEqual(summary["lineages"], 11)  # 1 before
        self.assertGreater(summary["generations"], 1000)
        self.assertGreater(summary["incarnations"], 100)
        self.assertEqual({w["attempt"] for w in summary["workers"]}, {101})  # 1 before
        self.assert_nothing_left()

    def test_a_lost_journal_is_reported_and_the_job_can_go_on_without(self):
        run_dir = self.broken_off()
        for file in run_dir.glob("state.db*"):
            file.unlink()
        refused = self.antdt("run", "--resume", run_dir)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("has no journal", refused.stderr)
        self.assertIn(f"antdt run --resume {run_dir} --from-checkpoint", refused.stderr)
        _, summary = self.resume(run_dir, "--from-checkpoint")
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    def test_damaged_checkpoints_are_passed_over_and_the_last_good_one_is_named(self):
        run_dir = self.broken_off()
        oldest, middle, newest = (p.parent for p in self.checkpoints(run_dir))
        model = newest / "tally.f32"
        model.write_bytes(model.read_bytes()[:-4])
        self.overwrite(middle / "tally.f32", 400, 40)
        done, summary = self.resume(run_dir)
        self.assertIn(f"checkpoint {newest} is damaged and passed over: tally.f32 has", done.stderr)
        self.assertRegex(done.stderr, f"{middle} is damaged .*checksum")
        self.assertIn(f"training goes on from {oldest} ", done.stdout)
        said = self.events(run_dir, "checkpoint-damaged")
        self.assertEqual(len(said), 2)
        self.assertTrue(any(str(newest) in text for text in said), said)
        self.assertIn(str(oldest), self.events(run_dir, "restored")[-1])
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    def test_without_a_journal_a_checkpoint_cut_short_is_not_used(self):
        run_dir = self.broken_off()
        (run_dir / "state.db").write_bytes(b"not a journal")
        for log in run_dir.glob("state.db-*"):
            log.unlink()
        oldest, middle, newest = (p.parent for p in self.checkpoints(run_dir))
        (newest / "MANIFEST.json").unlink()
        done, summary = self.resume(run_dir, "--from-checkpoint")
        self.assertIn(f"checkpoint {newest} is damaged", done.stderr)
        self.assertIn(f"training goes on from {middle} ", done.stdout)
        self.assert_exact(summary, run_dir, RECORDS, 2)

    def test_without_journal_and_checkpoint_nothing_is_begun(self):
        run_dir = self.broken_off()
        (run_dir / "state.db").write_bytes(b"not a journal")
        for manifest in self.checkpoints(run_dir):
            manifest.write_text("")
        def files():
            return {p.name: p.stat().st_size for p in run_dir.iterdir() if p.suffix != ".lock"}
        before = files()
        refused = self.antdt("run", "--resume", run_dir, "--from-checkpoint")
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertIn("has no complete checkpoint", refused.stderr)
        self.assertEqual(len(re.findall("is damaged and passed over", refused.stderr)), 3)
        self.assertEqual(files(), before)


if __name__ == "__main__":
    unittest.main()
