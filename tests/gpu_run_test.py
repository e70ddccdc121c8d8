"""bench/gpu/run ends what takes too long, and unpacks with what every machine has."""

import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import types
import unittest
import unittest.mock

SOURCE = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = SOURCE / "bench" / "gpu" / "run"
sys.path.insert(0, str(SOURCE / "bench"))
import runs  # noqa: E402

# A job runs until it is stopped: run JOB --run-dir RUN, stop RUN.
ANTDT = """#!/bin/sh
case $1 in
  run) while [ ! -e "$4.stopped" ]; do sleep 0.05; done ;;
  stop) touch "$2.stopped" ;;
  *) exit 1 ;;
esac
"""
# One that is never stopped, because it has not begun: what `antdt run` tries first hangs.
STUCK = """#!/bin/sh
case $1 in
  run) sleep 600 & echo $! > "$4.child"; wait ;;
  *) exit 1 ;;
esac
"""


def loaded():
    """The program as a module."""
    loader = importlib.machinery.SourceFileLoader("gpu_run", str(PROGRAM))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_run", loader))
    loader.exec_module(module)
    return module


def is_running(pid):
    """Whether it runs: a zombie, whose parent has gone, does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class GpuRun(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="antdt-gpu-run-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.run_ = loaded()

    def until(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def place(self, antdt=ANTDT):
        program = self.dir / "antdt"
        program.write_text(antdt, encoding="utf-8")
        program.chmod(0o755)
        return runs.Place(self.dir, self.dir)

    def job(self, antdt=ANTDT):
        return self.place(antdt).start("slow", "")

    def test_a_program_that_takes_too_long_is_killed_with_what_it_started(self):
        child = self.dir / "child"
        with self.assertRaises(subprocess.TimeoutExpired):
            self.run_.called("sh", "-c", f"sleep 600 & echo $! > {child}; wait", seconds=2)
        pid = int(child.read_text(encoding="utf-8"))
        self.until(lambda: not is_running(pid))

    def test_what_a_program_says_is_returned_and_its_failure_told(self):
        self.assertEqual(self.run_.called("echo", "a"), "a\n")
        with self.assertRaisesRegex(self.run_.Failed, "sh ended with 3: no disk"):
            self.run_.called("sh", "-c", "echo no disk >&2; exit 3")

    def test_a_job_that_takes_too_long_is_stopped(self):
        job = self.job()
        with self.assertRaises(subprocess.TimeoutExpired):
            job.finished(0.2)
        self.assertEqual(job.process.poll(), 0)
        self.assertTrue((self.dir / "slow.stopped").exists())

    def test_a_job_that_fails_is_told_with_what_it_said(self):
        job = self.job("#!/bin/sh\necho no disk >&2; exit 3\n")
        with self.assertRaisesRegex(SystemExit, "the job ended with 3: no disk"):
            job.finished(60)

    def test_a_job_that_cannot_be_stopped_is_killed_with_what_it_started(self):
        job = self.job(STUCK)
        child = self.dir / "slow.child"
        self.until(lambda: child.exists() and child.read_text(encoding="utf-8").strip())
        with unittest.mock.patch("runs.REFUSED_SECONDS", 0.2), self.assertRaises(subprocess.TimeoutExpired):
            job.finished(0.2)
        self.assertIsNotNone(job.process.poll())
        pid = int(child.read_text(encoding="utf-8"))
        self.until(lambda: not is_running(pid))

    def test_a_part_whose_job_hangs_has_failed_and_the_next_one_runs(self):
        place, table = self.place(), self.run_.Table(self.dir / "table")
        place.synth = lambda *_, **__: None
        args = self.arguments(pack=self.dir)
        alone = unittest.mock.Mock(return_value="{}")
        with unittest.mock.patch.multiple(self.run_, JOB_SECONDS=0.2, called=alone):
            self.run_.measured(self.run_.Build(args), ["deepfm", "transformer"], table, place)
        alone.assert_called_once()
        rows = [line for line in (self.dir / "table").read_text(encoding="utf-8").splitlines() if "FAILED" in line]
        self.assertEqual(len(rows), 5, table.text())
        for row in rows:
            self.assertIn("timed out after 0.2 seconds", row)
        self.assertTrue(table.failed)

    def test_a_job_that_does_not_come_to_what_is_awaited_is_stopped(self):
        job = self.job()
        with self.assertRaisesRegex(SystemExit, "the first epoch: not within 0.2 s"):
            job.until(lambda status: False, 0.2, "the first epoch")
        self.assertEqual(job.process.poll(), 0)

    def packed(self, version):
        (self.dir / "in").mkdir()
        (self.dir / "in" / "glibc").write_text(version + "\n", encoding="utf-8")
        (self.dir / "in" / "libz.so").symlink_to("libz.so.1")
        packed = self.dir / "packed.tar.xz"
        with tarfile.open(packed, "w:xz") as file:
            file.add(self.dir / "in", ".")
        return packed

    def arguments(self, **others):
        return types.SimpleNamespace(**{
            "build": self.dir / "build", "pack": None, "rows": 8, "device": "cpu", "python": sys.executable, "within": 60,
            "torch": "python", "cmake": [], "jobs": 1, "build_seconds": 60, **others})

    def build(self, packed):
        return self.run_.Build(self.arguments(pack=packed))

    def test_the_packed_file_is_unpacked_where_no_program_for_it_is(self):
        build = self.build(self.packed("2.1"))
        with unittest.mock.patch.dict(os.environ, PATH=str(self.dir / "nothing")):
            place = build.unpacked()
        self.assertEqual(os.readlink(place / "libz.so"), "libz.so.1")

    def test_a_packed_file_that_was_cut_is_refused_and_nothing_of_it_is_taken(self):
        packed = self.packed("2.1")
        packed.write_bytes(packed.read_bytes()[:60])
        build = self.build(packed)
        for _ in range(2):
            with self.assertRaisesRegex(self.run_.Failed, "packed.tar.xz cannot be unpacked"):
                build.unpacked()

    def test_a_part_that_was_never_thought_of_leaves_what_was_found_before(self):
        def nothing(_):
            return [][1]
        table = self.run_.Table(self.dir / "table")
        with unittest.mock.patch.multiple(self.run_, tests=lambda build: "3 passed", nccl=nothing):
            self.run_.measured(self.run_.Build(self.arguments()), ["tests", "nccl"], table, None)
        said = (self.dir / "table").read_text(encoding="utf-8")
        self.assertIn("| tests of the engine | 3 passed |", said)
        self.assertIn("| NCCL | FAILED: IndexError: list index", said)

    def test_without_clicks_the_parts_that_need_them_do_not_run_and_are_told(self):
        def full(*_, **__):
            raise SystemExit("antdt data synth ended with 5: no disk")
        ran, table = [], self.run_.Table()
        with unittest.mock.patch.multiple(self.run_, transformer=lambda *_: ran.append("transformer"),
                                          killed=lambda *_: ran.append("kill")):
            self.run_.measured(self.run_.Build(self.arguments()), ["transformer", "kill"], table,
                               types.SimpleNamespace(synth=full))
        self.assertEqual(ran, ["transformer"])
        self.assertIn("clicks to train on | FAILED: antdt data synth ended with 5: no disk", table.text())
        self.assertTrue(table.failed)

    def test_when_the_time_is_over_parts_are_told_as_not_run(self):
        ran, table = [], self.run_.Table()
        with unittest.mock.patch.multiple(self.run_, tests=lambda build: ran.append("tests"),
                                          nccl=lambda build: ran.append("nccl")):
            self.run_.measured(self.run_.Build(self.arguments(within=0)), ["tests", "nccl"], table, None)
        self.assertEqual(ran, [])
        self.assertEqual(table.text().count("not run: no time is left."), 2)
        self.assertFalse(table.failed)

    def test_no_program_gets_more_time_than_is_left(self):
        build, table = self.run_.Build(self.arguments(within=0.2)), self.run_.Table()
        with unittest.mock.patch.object(self.run_, "PART_SECONDS", 0):
            self.run_.part(table, "a job", build.deadline)(
                lambda: self.run_.called("sleep", "600", seconds=build.deadline.within(240)))
        self.assertIn("CUT OFF: no time is left (--within)", table.text())
        self.assertTrue(table.failed)

    def test_one_that_is_ended_ends_what_it_began(self):
        child, went = self.dir / "child", self.dir / "cmake"
        went.write_text(f"#!/bin/sh\nsleep 600 & echo $! > {child}; wait\n", encoding="utf-8")
        went.chmod(0o755)
        pack = self.dir / "build" / "pack"
        pack.mkdir(parents=True)
        (pack / "glibc").write_text("2.1\n", encoding="utf-8")
        with subprocess.Popen(
                [sys.executable, PROGRAM, "--device", "cpu", "--parts", "build", "--build", self.dir / "build", "--pack",
                 self.dir / "any", "--out", self.dir / "table"],
                env=dict(os.environ, PATH=f"{self.dir}:{os.environ['PATH']}"), stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL) as program:
            self.until(lambda: child.exists() and child.read_text(encoding="utf-8").strip())
            program.terminate()
            self.assertEqual(program.wait(60), 143)
        pid = int(child.read_text(encoding="utf-8"))
        self.until(lambda: not is_running(pid))
        self.assertIn("ended from outside", (self.dir / "table").read_text(encoding="utf-8"))

    def test_the_ends_of_all_logs_are_kept_where_a_part_failed(self):
        logs = self.dir / "jobs" / "kill" / "logs"
        logs.mkdir(parents=True)
        (logs / "w0.1.err").write_text("x" * 1000 + "CUDA error", encoding="utf-8")
        (self.dir / "jobs" / "model.bin").write_bytes(b"large")
        with unittest.mock.patch.object(self.run_, "LOGS_BYTES", 100):
            self.run_.keep_logs(self.dir / "jobs", self.dir / "table")
        with tarfile.open(self.dir / "table.logs.tar.gz") as kept:
            self.assertEqual(kept.getnames(), ["kill/logs/w0.1.err"])
            self.assertEqual(kept.extractfile("kill/logs/w0.1.err").read(), b"x" * 90 + b"CUDA error")

    def test_a_device_is_busy_between_its_first_and_its_last_work(self):
        program = self.dir / "nvidia-smi"
        program.write_text("#!/bin/sh\nfor i in 0 0 80 0 60 0 0; do echo $i; done; exec sleep 600\n", encoding="utf-8")
        program.chmod(0o755)
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.dir}:{os.environ['PATH']}"):
            with self.run_.Utilisation() as device:
                self.until(lambda: len(device.samples()) >= 7)
        self.assertIn("device busy 47% of the time from its first to its last work (0.6 s) and 80% at most", device.text)

    def test_a_tool_is_found_in_its_package_and_named_where_it_is_missing(self):
        package = self.dir / "made_up"
        package.mkdir()
        (package / "__init__.py").write_text(f"BIN_DIR = {str(package)!r}\n", encoding="utf-8")
        (package / "made_up").write_text("#!/bin/sh\n", encoding="utf-8")
        (package / "made_up").chmod(0o755)
        with unittest.mock.patch.dict(os.environ, PYTHONPATH=str(self.dir)):
            self.assertEqual(self.run_.tool(sys.executable, "made_up", "BIN_DIR"), str(package / "made_up"))
        with self.assertRaisesRegex(self.run_.Failed, "there is no made_up on PATH.*pip download made_up"):
            self.run_.tool(sys.executable, "made_up", "BIN_DIR")

    def test_a_packed_file_that_was_not_brought_is_named_with_what_makes_it(self):
        with self.assertRaisesRegex(self.run_.Failed, "there is no .*packed.tar.xz.*`bench/gpu/pack` makes it"):
            self.build(self.dir / "packed.tar.xz").unpacked()

    def refused(self, *words):
        done = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_a_part_that_is_none_is_refused_with_those_that_are(self):
        self.assertIn("parts are build, tests, nccl, transformer, kill, deepfm", self.refused("--parts", "tests,nvcc"))

    def test_parts_without_a_build_say_how_to_build(self):
        said = self.refused("--parts", "tests", "--build", str(self.dir / "build"))
        self.assertIn("bench/gpu/run --parts build makes them", said)

    def test_only_the_parts_that_are_named_run(self):
        ran = []
        with unittest.mock.patch.multiple(
                self.run_, tests=lambda build: ran.append("tests"), nccl=lambda build: ran.append("nccl"),
                trained=lambda *_: ran.append("deepfm"), killed=lambda *_: ran.append("kill"),
                transformer=lambda *_: ran.append("transformer")):
            place = types.SimpleNamespace(synth=lambda *_, **__: ran.append("data"))
            self.run_.measured(self.run_.Build(self.arguments()), ["nccl", "kill"], self.run_.Table(), place)
        self.assertEqual(ran, ["nccl", "data", "kill"])


if __name__ == "__main__":
    unittest.main()
