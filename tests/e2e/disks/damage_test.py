"""The files of a run are damaged. Nothing wrong is trained, a message says what to do, and training
goes on from the last complete checkpoint."""

import json
import re
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import ANTDT, await_true, needs_trainer

RECORDS = 30000
EXTRA = '[checkpoint]\nevery = "500ms"\nkeep = 3\n'


@needs_trainer
class Damage(tally.TallyTest):
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
        self.assertEqual(summary["lineages"], old[0] + 1)
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

    def test_a_job_that_cannot_list_its_checkpoints_waits_until_it_can(self):
        job = self.write("job.toml", tally.job(workers=2, records=RECORDS, delay="10ms", extra=EXTRA))
        process, run_dir = self.start_job(job)
        self.await_training(run_dir)
        await_true(lambda: self.checkpoints(run_dir), 60, "a checkpoint")
        folder, away = run_dir / "checkpoints", run_dir / "away"
        folder.rename(away)
        folder.write_text("no folder")
        for worker in self.await_answer(run_dir)["workers"]:
            self.kill(worker["pid"])
        await_true(lambda: self.events(run_dir, "checkpoint-unknown"), 60, "a word about it")
        [said] = self.events(run_dir, "checkpoint-unknown")
        self.assertRegex(said, "checkpoints cannot be listed: .*the job waits until")
        self.assertEqual(self.events(run_dir, "restored"), [])
        folder.unlink()
        away.rename(folder)
        summary = self.finish(process, run_dir)
        [restored] = self.events(run_dir, "restored")
        self.assertIn(f"from {folder}/s", restored)
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    @staticmethod
    def hidden(path):
        """Puts a directory in the file's place, which is there and cannot be read; returns what puts
        the file back."""
        away = path.with_suffix(".away")
        path.rename(away)
        path.mkdir()

        def put_back():
            path.rmdir()
            away.rename(path)
        return put_back

    def test_a_job_none_of_whose_checkpoints_can_be_read_waits_until_one_can(self):
        run_dir = self.broken_off()
        process = subprocess.Popen(
            [ANTDT, "run", "--resume", str(run_dir), "--set", "checkpoint.every=1h"], env=self.env,
            cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        status = self.await_training(run_dir)
        kept = [path.parent for path in self.checkpoints(run_dir)]
        put_back = [self.hidden(path / "tally.f32") for path in kept]
        restored = len(self.events(run_dir, "restored"))
        for worker in status["workers"]:
            self.kill(worker["pid"])
        await_true(lambda: self.events(run_dir, "checkpoint-unknown"), 60, "a word about it")
        [said] = self.events(run_dir, "checkpoint-unknown")
        self.assertRegex(said, f"checkpoint {kept[-1]} cannot be read: tally.f32 .*"
                               "the job waits until .*If it is lost, remove it")
        self.assertEqual(len(self.events(run_dir, "restored")), restored)
        put_back[-1]()
        summary = self.finish(process, run_dir)
        self.assertIn(f"from {kept[-1]} ", self.events(run_dir, "restored")[-1])
        self.assertEqual(self.events(run_dir, "checkpoint-damaged"), [])
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    def test_a_checkpoint_that_cannot_be_read_is_waited_for_and_then_an_older_one_goes_on(self):
        run_dir = self.broken_off()
        _, middle, newest = (p.parent for p in self.checkpoints(run_dir))
        self.hidden(newest / "tally.f32")
        done, summary = self.resume(run_dir)
        self.assertIn(f"checkpoint {newest} cannot be read: tally.f32", done.stderr)
        [waits] = self.events(run_dir, "checkpoint-unknown")
        self.assertIn(f"The job waits a minute for it, and then goes on from {middle}", waits)
        [passed] = self.events(run_dir, "checkpoint-damaged")
        self.assertRegex(passed, f"{newest} cannot be read: .*After a minute training goes on from "
                                 f"{middle} ")
        self.assertIn(str(middle), self.events(run_dir, "restored")[-1])
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    def test_a_run_of_which_no_checkpoint_can_be_read_is_not_begun_anew(self):
        run_dir = self.broken_off()
        oldest, *others = self.checkpoints(run_dir)
        for path in others:
            (path.parent / "tally.f32").unlink()
        put_back = self.hidden(oldest)
        refused = self.antdt("run", "--resume", run_dir)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("tally.f32 is missing", refused.stderr)
        self.assertIn("mend that, and resume it again", refused.stderr)
        put_back()
        done, summary = self.resume(run_dir)
        self.assertIn("training goes on from", done.stdout)
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    def test_a_run_whose_checkpoints_cannot_be_listed_is_not_begun_anew(self):
        run_dir = self.broken_off()
        folder, away = run_dir / "checkpoints", run_dir / "away"
        folder.rename(away)
        folder.write_text("no folder")
        refused = self.antdt("run", "--resume", run_dir)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("checkpoints cannot be listed", refused.stderr)
        self.assertIn("mend that, and resume it again", refused.stderr)
        folder.unlink()
        away.rename(folder)
        done, summary = self.resume(run_dir)
        self.assertIn("training goes on from", done.stdout)
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
        self.assertIn("has no whole checkpoint", refused.stderr)
        self.assertEqual(len(re.findall("is damaged and passed over", refused.stderr)), 3)
        self.assertEqual(files(), before)


if __name__ == "__main__":
    unittest.main()
