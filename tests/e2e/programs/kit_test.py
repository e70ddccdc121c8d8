"""Programs on the C++ kit, built only with an installed prefix. Their registered models train while
processes are killed, and users' mistakes are reported before anything starts if that is
possible."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import shared  # noqa: F401 (finds what follows)
import npy
import tally
from harness import BIN, SOURCE, needs_trainer, processes_of

BUILD = BIN.parent
EXAMPLE = SOURCE / "examples" / "own-model"
MODELS = SOURCE / "tests" / "e2e" / "programs" / "kit_models"
PROGRAMS = pathlib.Path(tempfile.gettempdir())  # of this run; setUpModule() makes it
FAILURE = """
[failure]
hang_after = "8s"
budgets = { program = 1000, oom = 1000, signal = 1000, hang = 1000, host = 1000, collective = 1000 }
"""


def done(*words):
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if run.returncode != 0:
        raise AssertionError(f"{words}: {run.stdout[-3000:]}{run.stderr[-3000:]}")
    return run.stdout


def setUpModule():
    """Installs the kit, and builds two programs with it."""
    global PROGRAMS
    if not (BIN / "antdt-trainer").exists():
        return
    library = BUILD / "lib" / "libantdt-kit.so"
    if re.search("__asan_|__tsan_", done("nm", "-D", "--undefined-only", library)):
        raise unittest.SkipTest("a sanitizer's library is for programs of its own compiler")
    PROGRAMS = pathlib.Path(tempfile.mkdtemp(prefix="antdt-kit-"))
    unittest.addModuleCleanup(shutil.rmtree, PROGRAMS, ignore_errors=True)
    for component in ("lib", "dev", "kit", "kitdev"):
        done("cmake", "--install", BUILD, "--prefix", PROGRAMS / "prefix", "--component", component)
    builds = []
    for source in (EXAMPLE, MODELS):
        build = PROGRAMS / source.name
        done("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={PROGRAMS / 'prefix'}",
             "-DCMAKE_CXX_FLAGS=-O0 -Wall -Wextra -Werror")
        builds.append(subprocess.Popen(["cmake", "--build", str(build)], text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    for build in builds:
        out, _ = build.communicate()
        if build.returncode != 0:
            raise AssertionError(out[-5000:])


@needs_trainer
class KitTest(tally.TallyTest):
    models = property(lambda self: PROGRAMS / "kit_models" / "kit-models")
    example = property(lambda self: PROGRAMS / "own-model" / "own-model")

    def job(self, trainer, user="", program=None, workers=3, records=6000, epochs=2, batch=96,
            data="", extra="", delay=""):
        inject = f'[[inject]]\nworkers = ["*"]\ndelay = "{delay}"\n' if delay else ""
        return self.write("job.toml", f"""
schema = 1
[job]
name = "kit"
epochs = {epochs}
seed = 3
[roles.worker]
count = {workers}
command = ["{program or self.models}"]
[data]
format = "index"
records = {records}
{data}
[batch]
global = {batch}
[trainer]
{trainer}
[user]
{user}
{extra}
{inject}
""")

    def exported(self, run_dir, name):
        out = self.dir / f"model-{run_dir.name}"
        if not out.exists():
            self.assertEqual(self.antdt("model", "export", run_dir, "--out", out).returncode, 0)
        return npy.read_npy(out / f"{name}.npy")[1]

    def refused(self, *args, **kinds):
        """The message of `antdt run` for a job that is refused before it has a run directory."""
        run = self.run_job(self.job(*args, **kinds))
        self.assertEqual(run.code, 2, run.explain())
        self.assertFalse(run.dir.exists(), "something was started")
        return run.err

    def failed(self, *args, **kinds):
        """The workers' messages in a job that failed."""
        run = self.run_job(self.job(*args, **kinds))
        self.assertNotEqual(run.code, 0, run.explain())
        return "".join(p.read_text() for p in (run.dir / "logs").glob("w*.err")) + run.err + run.out


class Training(KitTest):
    def strike(self, process, run_dir, program, samples):
        """Kills a worker at each of these numbers of samples."""
        for point in samples:
            self.await_training(run_dir, point)
            found = [pid for pid, command in processes_of(str(self.dir))
                     if command.split(" ", 1)[0].endswith(program)]
            self.assertTrue(found and self.kill(found[0]), "no worker to kill")
        return self.finish(process, run_dir)

    def test_each_record_enters_a_model_of_the_programs_own_once_an_epoch_under_kills(self):
        process, run_dir = self.start_job(self.job(
            'model = "counts"\noptimizer = "count"', extra=FAILURE + '[checkpoint]\nevery = "1s"\n',
            delay="20ms"))
        summary = self.strike(process, run_dir, "kit-models", (1500, 4500, 9000))
        self.assertGreaterEqual(summary["generations"], 3)
        counts = self.exported(run_dir, "counts")
        wrong = {i: c for i, c in enumerate(counts) if c != 2}
        self.assertEqual((len(counts), wrong), (6000, {}))
        self.assertEqual(summary["samples_trained"], 12_000)

    def test_the_example_learns_under_a_kill_and_its_buffers_are_near_those_of_one_process(self):
        text = (EXAMPLE / "job.toml").read_text().replace("./build/own-model", str(self.example))
        # Large steps, so that the running means have little noise.
        for old, new in (("epochs = 5", "epochs = 3"), ("\nrecords = 20000", "\nrecords = 80000"),
                         ("global = 128", "global = 512")):
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        text += FAILURE
        process, run_dir = self.start_job(self.write("three.toml", text))
        summary = self.strike(process, run_dir, "own-model", (15_000,))
        one = self.run_job(self.write("one.toml", text.replace("count = 3", "count = 1")))
        self.assert_done(one)
        accuracy = [s["epochs"][-1]["eval"]["accuracy"] for s in (summary, one.summary)]
        auc = [s["epochs"][-1]["eval"]["auc"] for s in (summary, one.summary)]
        print(f"accuracy {accuracy}, AUC {auc}", flush=True)
        self.assertGreater(min(accuracy), 0.9)
        self.assertGreater(min(auc), 0.95)
        # They began with 0 and 1; of all records x has the mean 0 and the variance 1/6.
        means, variances = [[self.exported(run, f"layers.0.running_{name}") for run in
                             (run_dir, one.dir)] for name in ("mean", "var")]
        print(f"means {means}, variances {variances}", flush=True)
        # A running mean of steps of 512 records, of which the last ten count most, has a standard
        # deviation of 0.004, and the killed job's last steps may have other records.
        for values in (means, variances):
            for of_three, of_one in zip(*values):
                self.assertAlmostEqual(of_three, of_one, delta=0.02)
        for of_one in variances[1]:
            self.assertAlmostEqual(of_one, 1 / 6, delta=0.06)
        steps = [self.exported(run, "layers.0.num_batches_tracked")[0] for run in (run_dir, one.dir)]
        self.assertGreater(min(steps), 400)

    def test_a_model_with_a_table_is_trained_on_parameter_servers(self):
        run = self.run_job(self.job(
            'model = "table"\nsync = "ps-bsp"\noptimizer = "adagrad"\nlr = 0.5', records=3000,
            workers=2, extra="[roles.server]\ncount = 2\n"))
        self.assert_done(run)
        self.assert_once(run, 2, 3000)
        losses = [epoch["train_loss"] for epoch in run.summary["epochs"]]
        self.assertLess(losses[1], losses[0] / 2)

    def test_a_micro_batch_that_does_not_fit_the_memory_is_computed_in_pieces_and_bounds_plans(self):
        # At the rate 96 a step adds 96 in all, divided equally among its records, which are at most 96.
        run = self.run_job(self.job(
            'model = "hungry-counts"\noptimizer = "sgd"\nlr = 96.0\nprecision = "bf16"', "most = 10",
            records=4800, workers=2))
        self.assert_done(run)
        self.assert_once(run, 2, 4800)
        counts = self.exported(run.dir, "counts")
        self.assertGreaterEqual(min(counts), 2, "2 when every step is full")
        self.assertAlmostEqual(sum(counts) / 96, round(sum(counts) / 96), places=3)
        bounds = {w["id"]: w["device"]["max_micro_batch"] for w in run.summary["workers"]}
        self.assertEqual(bounds, {"w0": 6, "w1": 6}, "48, 24 and 12 do not fit")
        events = [json.loads(line) for line in (run.dir / "events.jsonl").read_text().splitlines()]
        told = [e["text"] for e in events if e["kind"] == "memory"]
        self.assertTrue(any("w0 ran out of its device's memory" in text for text in told), told)
        said = "".join(p.read_text() for p in (run.dir / "logs").glob("w*"))
        self.assertIn("cpu has no room for a micro-batch of 48 records: 3145728 bytes were asked for", said)

    def test_devices_that_a_job_cannot_use_are_refused_with_what_to_write(self):
        said = self.refused('model = "table"\nsync = "ps-bsp"\ndevice = "cuda"', extra="[roles.server]\ncount = 1\n")
        self.assertIn("workers of parameter servers compute on a processor: write trainer.device", said)
        said = self.refused('model = "table"\nembedding_gradients = "sparse"\nprecision = "bf16"')
        self.assertIn('write trainer.precision = "fp32"', said)

    def test_antdt_trainers_models_are_in_a_users_program(self):
        run = self.run_job(self.job('model = "tally"', records=2000, workers=2))
        self.assert_done(run)
        self.assert_once(run, 2, 2000)


class Told(KitTest):
    def test_unknown_names_are_reported_with_the_existing_ones(self):
        said = self.refused('model = "count"')
        self.assertIn("trainer.model 'count' is not known: this program has counts, deepfm", said)
        said = self.refused('model = "counts"\nschedule = "cosine"')
        self.assertIn("trainer.schedule 'cosine' is not known: this program has lost", said)
        said = self.refused('model = "counts"\nreader = "x"')
        self.assertIn("trainer.reader 'x' is not known: this program has broken, nameless, one-more", said)

    def test_options_that_nothing_reads_or_that_have_another_type_are_reported(self):
        said = self.refused('model = "wrong"', 'how = "well"\nhwo = 3')
        self.assertIn("[user] has hwo, which the program does not read", said)
        self.assertIn("it reads how", said)
        said = self.refused('model = "wrong"', "how = 3")
        self.assertIn("[user] how is a whole number: it must be a string", said)
        self.assertIn("[user] how is missing", self.refused('model = "wrong"'))

    def test_a_reader_with_another_number_of_records_is_reported(self):
        said = self.refused('model = "counts"\nreader = "one-more"', records=100)
        self.assertIn("trainer.reader 'one-more' has 101 records, and data.records is 100", said)

    def test_models_that_servers_cannot_hold_are_refused(self):
        servers = "[roles.server]\ncount = 1\n"
        said = self.refused('model = "counts"\nsync = "ps-bsp"', extra=servers)
        self.assertIn("'counts' is not for parameter servers: it has no embedding table", said)

    def test_another_program_has_no_names_of_its_own_and_is_not_run(self):
        script = self.write("train.sh", "#!/bin/sh\ntouch was-run\n")
        script.chmod(0o755)
        said = self.refused('model = "mine"', program=script)
        self.assertIn("trainer.model: 'mine' is none of", said)
        self.assertIn("is not made with the C++ kit", said)
        self.assertFalse((self.dir / "was-run").exists())

    def test_exceptions_of_any_part_are_reported(self):
        small = dict(records=500, workers=1, epochs=1,
                     extra="[failure]\nbudgets = { program = 0 }\n")
        said = self.failed('model = "wrong"', 'how = "throws"', **small)
        self.assertIn("the model cannot compute a batch of", said)
        self.assertIn("the projector has no bulb", said)
        said = self.failed('model = "wrong"', 'how = "nan"', **small)
        self.assertRegex(said, "the loss of a micro-batch of .* is nan")
        said = self.failed('model = "wrong"\nreader = "broken"', 'how = "well"', **small)
        self.assertIn("no page", said)
        said = self.failed('model = "wrong"\noptimizer = "jammed"', 'how = "well"', **small)
        self.assertIn("the model cannot be updated: the gears jam", said)
        said = self.failed('model = "wrong"\nschedule = "lost"', 'how = "well"', **small)
        self.assertIn("the model cannot be updated: no rate for today", said)
        said = self.refused('model = "wrong"\nreader = "nameless"', 'how = "well"')
        self.assertIn("trainer.reader 'nameless' cannot name its data: the title is torn off", said)

    def test_members_whose_models_differ_do_not_train(self):
        for how, words in (("unlike", "are the same programs"),
                           ("unlike-sizes", "their models or optimizers differ")):
            with self.subTest(how):
                said = self.failed('model = "wrong"', f'how = "{how}"', workers=2, records=500,
                                   extra="[failure]\nbudgets = { program = 0 }\n")
                self.assertIn(words, said)

    def test_the_program_describes_itself(self):
        names = json.loads(done(self.models, "--describe"))
        self.assertIn("counts", names["models"])
        self.assertIn("tally3", names["models"])
        self.assertEqual(names["optimizers"], ["adagrad", "adam", "count", "jammed", "sgd"])


class Installed(KitTest):
    def test_zeromq_is_hidden_and_only_the_kit_is_exported(self):
        prefix = PROGRAMS / "prefix"
        needs = done("readelf", "-d", self.example)
        self.assertNotIn("zmq", needs)
        self.assertIn("libantdt-kit.so.1", needs)
        library = next(prefix.rglob("libantdt-kit.so"))
        names = done("nm", "-DC", "--defined-only", library)
        # Instances of LibTorch's templates belong to LibTorch, whatever their arguments are.
        ours = {line.split(" ", 2)[2] for line in names.splitlines() if "antdt::" in line}
        inside = {name for name in ours if re.match(r"antdt::(trainer|client|wire|transport|data|ps)::",
                                                    name)}
        self.assertEqual(inside, set())
        self.assertTrue(any("antdt::run_worker" in name for name in ours))
        for header in (prefix / "include" / "antdt").rglob("*.h"):
            self.assertNotRegex(header.read_text(), r'#include "', "an include of this source tree")


if __name__ == "__main__":
    unittest.main()
