"""`antdt model export`: other programs read the same numbers that the checkpoint holds."""

import json
import math
import os
import resource
import signal
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
import npy
import slices
import tally
from harness import ANTDT, await_true, needs_trainer


def on_servers(text):
    return text.replace("allreduce", "ps-bsp") + "\n[roles.server]\ncount = 2\n"


def whole(run_dir):
    """The whole checkpoints, oldest first."""
    return sorted((p for p in (run_dir / "checkpoints").iterdir() if p.name.startswith("s")),
                  key=tally.order_of)


def spoil(file):
    """Another byte in its middle, the length as before."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def may_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"],
                                                capture_output=True).returncode == 0


def no_long_files():
    """A write past this fails, as it does on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 10, 100 << 10))


class ExportTest(tally.TallyTest):
    def export(self, run_dir, *args, out="model"):
        done = self.antdt("model", "export", run_dir, "--out", self.dir / out, *args)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return npy.Model(self.dir / out)

    def refused(self, code, run_dir, *args, out="model"):
        """Returns the message; no file is made, in the directory or beside it."""
        before = {p.name for p in self.dir.iterdir()}
        done = self.antdt("model", "export", run_dir, "--out", self.dir / out, *args)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual({p.name for p in self.dir.iterdir()}, before)
        return done.stderr

    def trained(self, text):
        run = self.run_job(self.write("job.toml", text))
        self.assert_done(run)
        return run

    def assert_origin(self, model, run, name):
        self.assertEqual(model.index["job"], run.summary["job"])
        self.assertEqual(model.index["model"], name)
        newest = whole(run.dir)[-1]
        self.assertEqual(model.index["checkpoint"], newest.name)
        self.assertEqual(model.index["step"],
                         json.loads((newest / "MANIFEST.json").read_text())["step"])


@needs_trainer
class Tally(ExportTest):
    def test_on_servers_every_value_is_the_number_of_epochs(self):
        records = 5000
        run = self.trained(on_servers(tally.job(2, records, epochs=3)).replace(
            '"tally"\nsync', '"tally3"\nsync'))
        model = self.export(run.dir)
        self.assert_origin(model, run, "tally3")
        self.assertEqual(model.parameters, {})
        self.assertEqual(model.tables.keys(), {"tally"})
        rows = model.tables["tally"]
        self.assertEqual(rows.keys(), set(range(3 * records)))
        self.assertEqual({key: list(row) for key, row in rows.items() if list(row) != [3]}, {})

    def test_under_all_reduce_every_value_is_the_number_of_epochs(self):
        run = self.trained(tally.job(2, 5000))
        model = self.export(run.dir)
        self.assert_origin(model, run, "tally")
        shape, counts = model.parameters["tally"]
        self.assertEqual((shape, set(counts)), ((5000,), {2}))
        self.assertEqual(model.tables, {})

    def test_the_checkpoint_that_is_asked_for_is_exported(self):
        run = self.trained(tally.job(2, 20000, delay="10ms",
                                     extra='[checkpoint]\nevery = "1s"\nkeep = 3\n'))
        oldest, newest = whole(run.dir)[0], whole(run.dir)[-1]
        self.assertNotEqual(oldest, newest)
        model = self.export(run.dir, "--checkpoint", oldest.name)
        self.assertEqual(model.index["checkpoint"], oldest.name)
        _, counts = model.parameters["tally"]
        self.assertEqual(counts.tobytes(), (oldest / "tally.f32").read_bytes())
        self.assertLess(sum(counts), 2 * 20000)
        said = self.refused(2, run.dir, "--checkpoint", "s7", out="other")
        self.assertIn("no checkpoint 's7'", said)
        self.assertIn(newest.name, said)

    def test_each_export_of_a_running_job_that_removes_checkpoints_is_whole(self):
        records = 20000
        process, run_dir = self.start_job(self.write("job.toml", tally.job(
            2, records, delay="10ms", extra='[checkpoint]\nevery = "1s"\nkeep = 1\n')))
        await_true(lambda: list((run_dir / "checkpoints").glob("s*")), 60, "a checkpoint")
        seen = []
        while process.poll() is None:
            model = self.export(run_dir, out=f"model{len(seen)}")
            counts = model.parameters["tally"][1]
            self.assertLessEqual(set(counts), {0, 1, 2})
            self.assertLessEqual(sum(counts), 64 * model.index["step"])
            seen.append(model.index["step"])
        self.finish(process, run_dir)
        self.assertEqual(seen, sorted(seen))

    def test_a_damaged_checkpoint_is_named_and_passed_over(self):
        run = self.trained(tally.job(2, 20000, delay="10ms",
                                     extra='[checkpoint]\nevery = "1s"\nkeep = 3\n'))
        *older, newest = whole(run.dir)
        spoil(newest / "tally.f32")
        said = self.refused(1, run.dir, "--checkpoint", newest.name)
        self.assertIn(f"{newest} is damaged: tally.f32 does not have the checksum", said)
        done = self.antdt("model", "export", run.dir, "--out", self.dir / "model")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{newest} is damaged and passed over", done.stderr)
        model = npy.Model(self.dir / "model")
        self.assertEqual(model.index["checkpoint"], older[-1].name)
        for checkpoint in older:
            spoil(checkpoint / "tally.json")
        self.assertIn("no checkpoint", self.refused(1, run.dir, out="other"))

    def test_existing_files_are_not_replaced_and_an_empty_directory_is_used(self):
        run = self.trained(tally.job(1, 1000, epochs=1))
        self.write("model", "mine")
        self.assertIn("is no directory", self.refused(2, run.dir))
        (self.dir / "full").mkdir()
        self.write("full/mine", "mine")
        self.assertIn("is not empty", self.refused(2, run.dir, out="full"))
        self.assertEqual((self.dir / "full" / "mine").read_text(), "mine")
        (self.dir / "empty").mkdir()
        self.export(run.dir, out="empty")
        done = self.antdt("model", "export", run.dir, "--out", "deep/below", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), npy.Model(self.dir / "deep/below").index)

    def test_an_export_that_cannot_be_written_to_its_end_leaves_nothing(self):
        run = self.trained(tally.job(2, 100000, epochs=1, batch=512))
        process = subprocess.run([ANTDT, "model", "export", str(run.dir), "--out", "model"],
                                 env=self.env, cwd=self.dir, stderr=subprocess.PIPE, text=True,
                                 preexec_fn=no_long_files)
        self.assertEqual(process.returncode, 1, process.stderr)
        self.assertIn("tally.npy: File too large", process.stderr)
        self.assertIn("model is not there", process.stderr)
        self.assertEqual(list(self.dir.glob("*model*")), [])

    def test_a_run_without_a_checkpoint_says_when_there_will_be_one(self):
        process, run_dir = self.start_job(self.write("job.toml", tally.job(
            1, 20000, delay="20ms", extra='[checkpoint]\nevery = "1h"\n')))
        self.await_training(run_dir)
        self.assertIn("no checkpoint yet", self.refused(2, run_dir))
        self.assertIn("neither a run directory nor a job's id", self.refused(2, "nothing"))
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        process.communicate(timeout=60)
        self.export(run_dir)  # the one of the stop


@needs_trainer
@unittest.skipUnless(may_mount(), "mounting a small file system needs root")
class SmallDisk(ExportTest):
    def setUp(self):
        super().setUp()
        self.small = self.dir / "small"
        self.small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", self.small], check=True)
        self.addCleanup(lambda: subprocess.run(["umount", "-l", self.small], capture_output=True))

    def test_a_disk_without_room_is_named_and_nothing_is_left_on_it(self):
        run = self.trained(tally.job(2, 100000, epochs=1, batch=512))
        said = self.refused(1, run.dir, out="small/model")
        self.assertRegex(said, r"small/model needs 0\.4 MiB, and there are 0\.\d MiB free")
        self.assertEqual(list(self.small.iterdir()), [])
        self.assertIn("mounted", self.refused(2, run.dir, out="small"))


@needs_trainer
class Interrupted(ExportTest):
    def test_a_signal_ends_it_and_takes_away_what_was_written(self):
        records = 8 << 20
        run_dir = self.run_with_counts(records)
        process = subprocess.Popen([ANTDT, "model", "export", str(run_dir), "--out", "model"],
                                   env=self.env, cwd=self.dir, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        # Signals are blocked while this directory exists, so this one arrives in time.
        await_true(lambda: list(self.dir.glob(".model.export-*")) or process.poll() is not None, 60,
                   "it has begun to write")
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        self.assertEqual(list(self.dir.glob(".model.export-*")), [])
        if (self.dir / "model").exists():  # it was whole before the signal came
            self.assertEqual(len(npy.Model(self.dir / "model").parameters["tally"][1]), records)
        else:
            self.assertEqual(process.returncode, -signal.SIGTERM)

    def run_with_counts(self, records):
        run = self.trained(tally.job(1, records, epochs=1, batch=1 << 18))
        return run.dir


@needs_trainer
class Ctr(ExportTest):
    """DeepFM on made-up click logs, by all-reduce and on servers."""

    def train(self):
        done = self.antdt("data", "synth", "criteo", "--rows", 4000, "--out", self.dir / "data")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = jobs.ctr(self.dir / "data/train.tsv", self.dir / "data/eval.tsv", epochs=1)
        return self.trained(text), self.trained(on_servers(text))

    def test_each_parameter_equals_that_of_the_checkpoint(self):
        run, servers = self.train()
        model = self.export(run.dir)
        self.assert_origin(model, run, "deepfm")
        self.assert_is_state(model, whole(run.dir)[-1])
        on_them = self.export(servers.dir, out="servers")
        self.assert_origin(on_them, servers, "deepfm")
        self.assert_are_slices(on_them, whole(servers.dir)[-1])
        self.assert_named(on_them.parameters["dense"][1], model.index["parameters"])

    def assert_is_state(self, model, checkpoint):
        layout = json.loads((checkpoint / "state.json").read_text())
        self.assertEqual(layout["arrays"][0], "parameters")
        state = slices.floats((checkpoint / "state.bin").read_bytes())
        self.assertEqual(model.tables, {})
        self.assertEqual([p["name"] for p in layout["parameters"]], list(model.parameters))
        for entry in layout["parameters"]:
            shape, numbers = model.parameters[entry["name"]]
            self.assertEqual(list(shape), entry["sizes"])
            first = entry["first"]
            self.assertEqual(numbers, state[first:first + math.prod(shape)], entry["name"])
        self.assertEqual(model.parameters["table"][0], (16384, 9))

    def assert_are_slices(self, model, checkpoint):
        there = slices.read_tables(checkpoint)
        dense = there.pop("dense")
        self.assertEqual(model.tables.keys(), {"table", "first_order"})
        for name, rows in there.items():
            self.assertGreater(len(rows), 0)
            self.assertEqual(model.tables[name], {key: row for key, (row, _) in rows.items()})
        blocks = [dense[key][0] for key in range(len(dense))]
        self.assertEqual(list(model.parameters["dense"][1]), [x for row in blocks for x in row])

    def assert_named(self, dense, parameters):
        """The parameters are in `dense` as docs/model-export.md says, with zeros between them."""
        at = 0
        for entry in parameters:
            if entry["name"] == "table":
                continue
            count = math.prod(entry["shape"])
            self.assertTrue(any(dense[at:at + count]), entry)
            gap = -count % 16
            self.assertFalse(any(dense[at + count:at + count + gap]), entry)
            at += count + gap
        self.assertFalse(any(dense[at:]))
        self.assertLess(len(dense) - at, 1024)


if __name__ == "__main__":
    unittest.main()
