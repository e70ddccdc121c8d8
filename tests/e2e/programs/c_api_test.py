"""Programs in C on libantdt. Processes of all kinds are killed at random while they train, and
every record has entered their state once for each epoch. One program is built against an installed
prefix."""

import array
import collections
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import npy
import tally
from harness import BIN, SOURCE, await_true, processes_of
from kills import Agent

BUILD = BIN.parent
RECORDS = 30_000
EPOCHS = 2
KILLS = int(os.environ.get("ANTDT_KILLS", "25"))
SEED = int(os.environ.get("ANTDT_KILL_SEED", "0")) or random.randrange(1, 1 << 30)

FAILURE = """
[failure]
hang_after = "4s"
host_lost_after = "20s"
budgets = { program = 1000, oom = 1000, signal = 1000, hang = 1000, host = 1000, collective = 1000 }
[checkpoint]
every = "2s"
"""


def job(name, command, records, epochs=EPOCHS, batch=128, workers=4, delay="", extra=""):
    inject = f'[[inject]]\nworkers = ["*"]\ndelay = "{delay}"\n' if delay else ""
    words = ", ".join(json.dumps(str(word)) for word in command)
    return f"""
schema = 1
[job]
name = "{name}"
epochs = {epochs}
seed = 5
[roles.worker]
count = {workers}
command = [{words}]
[data]
format = "index"
records = {records}
[batch]
global = {batch}
[trainer]
sync = "allreduce"
{extra}
{inject}
"""


def parts_of(run_dir):
    """The parts of the newest checkpoint by name, as docs/c-api.md says that they are read."""
    checkpoint = tally.newest(run_dir)
    description = json.loads((checkpoint / "parts.json").read_text())
    data = (checkpoint / "parts.bin").read_bytes()
    codes = {"float32": "f", "float64": "d"}
    return {part["name"]: array.array(codes[part["dtype"]],
                                      data[part["first"]:part["first"] + part["bytes"]])
            for part in description["parts"]}


def noise(record, what):
    """The data that examples/c-logistic makes."""
    mask = (1 << 64) - 1
    x = (record * 0x9e3779b97f4a7c15 + what * 0xbf58476d1ce4e5b9 + 1) & mask
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & mask
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & mask
    return ((x ^ (x >> 31)) >> 11) / 9007199254740992.0


def loss_of(weights, records=20_000, features=20):
    """The loss of a model of examples/c-logistic, over all its records."""
    total = 0.0
    for record in range(records):
        x = [2 * noise(record, f) - 1 for f in range(features)]
        hidden = 0.3 + sum((-1.5 if f % 2 else 1.0) * x[f] for f in range(features))
        label = noise(record, 99) < 1 / (1 + math.exp(-2 * hidden))
        score = sum(w * v for w, v in zip(weights, [*x, 1]))
        total += math.log1p(math.exp(-score if label else score))
    return total / records


class CTest(tally.TallyTest):
    def strike(self, kind, run_dir, program):
        """Kills or stops one process of that kind, if there is one."""
        if kind in ("worker", "stop"):
            found = [pid for pid, command in processes_of(str(self.dir))
                     if command.split(" ", 1)[0].endswith(program)]
            which = signal.SIGSTOP if kind == "stop" else signal.SIGKILL
            return bool(found) and self.kill(self.random.choice(found), which)
        if kind == "agent":
            agent = self.random.choice(self.agents)
            return agent.process.poll() is None and self.kill(agent.process.pid)
        pid = self.jobd_pid(run_dir)
        return pid > 0 and self.kill(pid)

    def train_under_kills(self, text, program, samples, kills):
        """Runs a job of two agents whose processes are killed; returns its summary and run
        directory."""
        print(f"seed {SEED} (ANTDT_KILL_SEED), {kills} kills", flush=True)
        self.random = random.Random(SEED)
        keys = self.dir / "keys"
        self.assertEqual(self.antdt("keygen", "--dir", keys).returncode, 0)
        self.agents = [Agent(self, name, keys) for name in ("hosta", "hostb")]
        for agent in self.agents:
            self.addCleanup(agent.stop)

        def keep_agents():
            for agent in self.agents:
                agent.keep()

        hosts = ", ".join(f'"{a.endpoint}"' for a in self.agents)
        text += f'{FAILURE}\n[cluster]\nhosts = [{hosts}]\nkeys = "{keys}"\n'
        process, run_dir = self.start_job(self.write("job.toml", text))
        weights = {"worker": 10, "stop": 2, "jobd": 3, "agent": 2}
        faults = self.random.choices(list(weights), weights.values(), k=kills)
        moments = self.moments(process, run_dir, self.random, kills, samples, keep_agents)
        for kind, _ in zip(faults, moments):
            def struck(kind=kind):
                keep_agents()
                return self.strike(kind, run_dir, program)
            await_true(struck, 60, f"one to strike: {kind}")
        while process.poll() is None:
            keep_agents()
            time.sleep(0.1)
        summary = self.finish(process, run_dir, timeout=300)
        print(f"{dict(collections.Counter(faults))}; {summary['generations']} generations, "
              f"{summary['lineages']} lineages, {len(summary['failures'])} failures, "
              f"{summary['wall_seconds']:.0f} s", flush=True)
        return summary, run_dir

    def audit(self, run_dir, records):
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        for epoch in json.loads(audit.stdout)["epochs"]:
            self.assertEqual((epoch["once"], epoch["repeated"], epoch["lost"]), (records, 0, 0))

    def assert_counted(self, run_dir, records, epochs):
        parts = parts_of(run_dir)
        self.assertEqual(len(parts["low"]) + len(parts["high"]), records)
        wrong = {(name, i): count for name, part in parts.items()
                 for i, count in enumerate(part) if count != epochs}
        self.assertEqual(wrong, {}, "records that did not enter the state once an epoch")
        exported = self.antdt("model", "export", run_dir, "--out", self.dir / "model")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        for name, part in parts.items():
            self.assertEqual(npy.read_npy(self.dir / "model" / f"{name}.npy"), ((len(part),), part))
        self.audit(run_dir, records)


class KillLoop(CTest):
    def test_random_kills_of_everything_lose_no_record_of_a_c_program(self):
        program = "antdt-example-c-tally"
        text = job("c-tally", [BIN / program, RECORDS], RECORDS, delay="25ms")
        summary, run_dir = self.train_under_kills(text, program, RECORDS * EPOCHS, KILLS)
        self.assert_counted(run_dir, RECORDS, EPOCHS)
        self.assertEqual(summary["samples_trained"], RECORDS * EPOCHS)
        for agent in self.agents:
            agent.stop()
        self.assert_nothing_left()

    def test_a_regression_under_kills_reaches_the_loss_of_one_without(self):
        program = "antdt-example-c-logistic"
        text = job("c-logistic", [BIN / program], 20_000, batch=64)
        calm, calm_dir = self.finish_of(text)
        summary, run_dir = self.train_under_kills(
            text + '[[inject]]\nworkers = ["*"]\ndelay = "10ms"\n', program, 40_000, 8)
        self.audit(run_dir, 20_000)
        losses = [self.final_loss(s) for s in (calm, summary)]
        print(f"loss {losses[0]:.4f} without kills, {losses[1]:.4f} under them", flush=True)
        self.assertLess(losses[0], 0.21, "it does not learn")
        self.assertAlmostEqual(losses[1], losses[0], delta=0.01)
        on_all = [loss_of(parts_of(directory)["weights"]) for directory in (calm_dir, run_dir)]
        print(f"of the trained models on all records: {on_all[0]:.4f} and {on_all[1]:.4f}", flush=True)
        self.assertAlmostEqual(on_all[1], on_all[0], delta=0.005)

    def finish_of(self, text):
        process, run_dir = self.start_job(self.write("calm.toml", text))
        return self.finish(process, run_dir), run_dir

    def final_loss(self, summary):
        return summary["epochs"][-1]["train_loss"]


class Programs(CTest):
    def failure_of(self, text):
        run = self.run_job(self.write("job.toml", text))
        self.assertNotEqual(run.code, 0, run.explain())
        return run

    def test_a_job_of_parameter_servers_is_refused_with_the_line_to_change(self):
        text = job("ps", [BIN / "antdt-example-c-tally", 1000], 1000).replace(
            'sync = "allreduce"', 'sync = "ps-bsp"') + "[roles.server]\ncount = 1\n"
        run = self.failure_of(text)
        said = "".join(p.read_text() for p in (run.dir / "logs").glob("w*.err"))
        self.assertIn('trainer.sync is "ps-bsp"', said)
        self.assertIn('write sync = "allreduce"', said)

    def test_a_program_with_another_number_of_records_is_refused(self):
        run = self.failure_of(job("other", [BIN / "antdt-example-c-tally", 999], 1000))
        self.assertEqual(run.code, 2, run.explain())
        self.assertRegex(run.err + run.out, r"w\d on .* has 999 records to train on")

    def test_members_with_other_data_do_not_train_together(self):
        script = self.write("worker.sh", "#!/bin/sh\nexec " + str(BIN / "antdt-example-c-tally") +
                            ' 1000 "data of $ANTDT_WORKER_ID"\n')
        run = self.failure_of(job("unlike", ["/bin/sh", script], 1000, workers=2))
        self.assertRegex(run.err + run.out, "the data differs between hosts: w0 on .*fingerprint "
                         "data of w0, w1 on .*fingerprint data of w1")

    def test_an_evaluation_follows_each_epoch(self):
        run = self.run_job(self.write("job.toml", job(
            "evaluated", [BIN / "antdt-example-c-tally", 2000], 2000).replace(
                "records = 2000", "records = 2000\neval_records = 300")))
        self.assert_done(run)
        self.assertEqual([e["eval"]["records"] for e in run.summary["epochs"]], [300, 300])
        self.assertEqual([e["eval"]["accuracy"] for e in run.summary["epochs"]], [1, 1])

    def test_a_job_is_resumed_from_the_parts_of_its_checkpoint(self):
        text = job("resumed", [BIN / "antdt-example-c-tally", 4000], 4000, delay="20ms",
                   extra='[checkpoint]\nevery = "500ms"\n')
        process, run_dir = self.start_job(self.write("job.toml", text))
        self.await_training(run_dir, 1500)
        self.antdt("stop", run_dir)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75)
        resumed = self.antdt("run", "--resume", run_dir)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assert_counted(run_dir, 4000, EPOCHS)


class Installed(CTest):
    """Runs `cmake --install`, then builds a program only with the installed files."""

    def setUp(self):
        super().setUp()
        self.prefix = self.dir / "prefix"
        for component in ("lib", "dev"):
            done = subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(self.prefix),
                                   "--component", component], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.libdir = next(self.prefix.rglob("libantdt.so")).parent
        wanted = subprocess.run(["nm", "-D", "--undefined-only", str(self.libdir / "libantdt.so")],
                                capture_output=True, text=True, check=True).stdout
        if re.search("__asan_|__tsan_", wanted):
            self.skipTest("a sanitizer's library is for programs of its own compiler")
        self.env["LD_LIBRARY_PATH"] = str(self.libdir)

    def assert_trains(self, program):
        run = self.run_job(self.write("job.toml", job("own", [program], 20_000, epochs=1)))
        self.assertEqual(run.code, 0, run.explain())
        self.audit(run.dir, 20_000)

    def test_a_program_is_built_by_pkg_config_and_trains(self):
        env = dict(self.env, PKG_CONFIG_PATH=str(self.libdir / "pkgconfig"))
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "antdt"], env=env,
                               capture_output=True, text=True, check=True).stdout.split()
        program = self.dir / "own"
        subprocess.run(["cc", "-std=c99", "-Wall", "-Werror",
                        str(SOURCE / "examples" / "c-logistic" / "main.c"), "-o", str(program),
                        *flags, "-lm"], check=True)
        self.assert_trains(program)

    def test_a_program_is_built_by_find_package(self):
        source = self.dir / "source"
        source.mkdir()
        shutil.copy(SOURCE / "examples" / "c-tally" / "main.c", source)
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(own C)\n"
            "find_package(antdt 0.1 REQUIRED)\nadd_executable(own main.c)\n"
            "target_link_libraries(own antdt::antdt)\n")
        for words in (["-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}"],
                      ["--build", source / "build"]):
            done = subprocess.run(["cmake", *map(str, words)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        alone = subprocess.run([str(source / "build" / "own"), "100"], env=self.env,
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(alone.stdout, "record 0: 2, record 99: 2\n", alone.stderr)

    def test_the_library_needs_no_tensor_library_and_no_zeromq(self):
        needs = subprocess.run(["readelf", "-d", str(self.libdir / "libantdt.so")],
                               capture_output=True, text=True, check=True).stdout
        self.assertIn("libstdc++", needs)
        for library in ("torch", "zmq", "sodium", "sqlite"):
            self.assertNotIn(library, needs)
        names = subprocess.run(["nm", "-D", "--defined-only", str(self.libdir / "libantdt.so")],
                               capture_output=True, text=True, check=True).stdout
        functions = {line.split()[2] for line in names.splitlines() if " T " in line}
        header = (self.prefix / "include" / "antdt.h").read_text()
        declared = set(re.findall(r"^ANTDT_API[^;(]*?(antdt_\w+)\(", header, re.M))
        self.assertEqual({f.split("@")[0] for f in functions}, declared)
        self.assertEqual({f.split("@")[-1] for f in functions}, {"ANTDT_1"})


if __name__ == "__main__":
    unittest.main()
