"""Jobs with parameter servers, and the checks of their model."""

import json
import os
import random
import signal

import slices
import tally
from harness import BUILT_IN, await_true, processes_of, stat_of

KILLS = int(os.environ.get("ANTDT_KILLS", "8"))  # under each of them
SEED = int(os.environ.get("ANTDT_KILL_SEED", "0")) or random.randrange(1, 1 << 30)

BUDGETS = """
[failure]
hang_after = "10s"
budgets = { program = 1000, oom = 1000, signal = 1000, hang = 1000, host = 1000, collective = 1000 }
[checkpoint]
every = "1s"
"""


def job(model="tally3", workers=3, servers=2, records=20000, epochs=2, batch=96, delay="",
        extra="", sync="ps-bsp"):
    text = tally.job(workers, records, epochs, batch, delay,
                     f"[roles.server]\ncount = {servers}\n{extra}")
    return text.replace('model = "tally"', f'model = "{model}"').replace("allreduce", sync)


class ServersTest(tally.TallyTest):
    def assert_exact_on_servers(self, summary, run_dir, records, epochs, each=3):
        """Model, audit and summary agree that every record counted once in each epoch, in all its
        rows."""
        rows = slices.read_tables(tally.newest(run_dir))["tally"]
        self.assertEqual(len(rows), records * each)
        wrong = {key: values[0] for key, (values, _) in rows.items() if values[0] != epochs}
        self.assertEqual(wrong, {}, "parameters that were not counted once an epoch")
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        for epoch in json.loads(audit.stdout)["epochs"]:
            self.assertEqual((epoch["once"], epoch["repeated"], epoch["lost"]), (records, 0, 0))
        self.assertEqual(summary["samples_trained"], records * epochs)

    def hold_back(self, run_dir):
        """Slows the job down until go_on(), so that it is still training when the test acts."""
        held = self.antdt("inject", run_dir, 'workers=["*"]', 'delay="150ms"')
        self.assertEqual(held.returncode, 0, held.stderr)

    def go_on(self, run_dir):
        await_true(lambda: self.antdt("inject", run_dir, "--clear").returncode == 0, 60,
                   "it is not held back any more")

    def pids(self, program):
        """The pids of the job's processes of a program, without the children that they forked to
        write a checkpoint."""
        found = [pid for pid, command in processes_of(str(self.dir))
                 if command.split(" ", 1)[0].endswith(program)]
        return [pid for pid in found if stat_of(pid)[1:2] not in [[str(other)] for other in found]]

    def kill_one_of(self, program, rng, which=signal.SIGKILL):
        """Kills one of these processes, as soon as there is one, because it may just be starting
        again."""
        def killed():
            found = self.pids(program)
            return found and self.kill(rng.choice(found), which)
        await_true(killed, 60, f"a process of {program}")

    def kill_at_random(self, what, job, samples):
        """Kills and stops workers, servers and the job daemon at random while `job` trains so many;
        returns its run directory and summary."""
        print(f"{what}: seed {SEED} (ANTDT_KILL_SEED), {KILLS} kills", flush=True)
        rng = random.Random(SEED)
        process, run_dir = self.start_job(job)
        weights = {BUILT_IN: 5, "antdt-server": 3, "antdt-jobd": 2, "stop": 1}
        faults = rng.choices(list(weights), weights.values(), k=KILLS)
        for fault, _ in zip(faults, self.moments(process, run_dir, rng, KILLS, samples)):
            if fault == "stop":
                self.kill_one_of(BUILT_IN, rng, signal.SIGSTOP)
            else:
                self.kill_one_of(fault, rng)
        summary = self.finish(process, run_dir, timeout=400)
        print(f"{faults}; {summary['generations']} generations, {summary['lineages']} lineages, "
              f"{summary['incarnations']} incarnations, {summary['wall_seconds']:.0f} s",
              flush=True)
        lost = len(summary["failures"]) + summary["incarnations"] - 1
        self.assertGreaterEqual(lost, 1, "somebody was lost")
        return run_dir, summary


def newest_names(run_dir):
    found = run_dir / "checkpoints"
    return [p.name for p in found.iterdir() if p.name.startswith("s")] if found.exists() else []
