"""Jobs in allocations of a real Slurm, of two nodes on this machine's loopback addresses."""

import os
import pathlib
import shutil
import socket
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import ANTDT, EndToEnd, await_true, needs_trainer, processes_of
from hosts import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol")
RECORDS = 6000
NODES = {"n1": "127.0.0.11", "n2": "127.0.0.12"}

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket
CredType=cred/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
KillWait=5
SchedulerParameters=sched_interval=1,batch_sched_delay=0
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def why_not():
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [p for p in PROGRAMS if shutil.which(p, path=path) is None]
    if missing:
        return f"Slurm is not installed: {', '.join(missing)} missing (apt-get install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "slurmd starts jobs as their users, and so needs root"


@unittest.skipIf(why_not(), why_not())
class Slurm(EndToEnd):
    def setUp(self):
        super().setUp()
        self.daemons = 0
        self.env["PATH"] = os.environ["PATH"] + ":/usr/sbin:/sbin"
        self.env["SLURM_CONF"] = str(self.dir / "slurm.conf")
        for name in ("munge", "state"):
            (self.dir / name).mkdir(mode=0o755)
        self.dir.chmod(0o755)
        key = self.dir / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr={address} "
            f"Port={free_port()} CPUs=2 State=UNKNOWN" for name, address in NODES.items())
        self.write("slurm.conf", CONF.format(host=socket.gethostname(), port=free_port(),
                                             dir=self.dir, nodes=nodes))
        munge = self.dir / "munge"
        self.daemon("munged", "--foreground", "--force", "--num-threads=1", f"--key-file={key}",
                    f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                    f"--seed-file={munge}/seed", f"--log-file={munge}/log")
        await_true((munge / "socket").exists, 10, "munged")
        self.daemon("slurmctld", "-D", "-c")
        self.slurmd = {name: self.daemon("slurmd", "-D", "-N", name) for name in NODES}
        await_true(lambda: self.slurm("sinfo", "-h", "-o", "%D %t").strip() == "2 idle", 20,
                   f"both nodes idle, see {self.dir}")

    def daemon(self, *command):
        self.daemons += 1
        log = open(self.dir / f"{command[0]}-{self.daemons}.log", "w")
        self.addCleanup(log.close)
        process = subprocess.Popen(command, env=self.env, stdout=log, stderr=log)

        def end():
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        self.addCleanup(end)
        return process

    def slurm(self, *command):
        done = subprocess.run(list(map(str, command)), env=self.env, cwd=self.dir, timeout=60,
                              capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else f"{done.returncode}: {done.stderr}"

    def submit(self, command):
        script = self.write("job.sh", f"#!/bin/sh\nexec {command}\n")
        (self.dir / "out").unlink(missing_ok=True)
        job = self.slurm("sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=1",
                         "--cpus-per-task=2", "--exclusive", "--output=out", script).strip()
        self.assertTrue(job.isdigit(), job)
        return job

    def ended(self, job):
        """The exit status of the batch script."""
        def fields():
            text = self.slurm("scontrol", "show", "job", job, "--oneliner")
            known = dict(w.split("=", 1) for w in text.split() if "=" in w)
            states = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
            return known if known.get("JobState") in states else None
        found = await_true(fields, 60, "the job of Slurm ends")
        return int(found["ExitCode"].split(":")[0])

    def output(self):
        out = self.dir / "out"
        return out.read_text() if out.exists() else "no output"

    def assert_nothing_left(self):
        def left():
            names = ("antdtd ", "antdt-shim", "antdt-jobd", "antdt-trainer")
            return [c for _, c in processes_of(str(self.dir)) if any(n in c for n in names)]
        await_true(lambda: not left(), 10, f"no process is left: {left()}")
        self.assertEqual(list(pathlib.Path(self.temporary).glob("antdt-slurm-*")), [])
        self.assertEqual(list(self.runtime.glob("**/*.key")), [])

    @needs_trainer
    def test_a_batch_job_uses_both_nodes_stops_with_a_checkpoint_and_goes_on(self):
        job = self.write("job.toml", tally.job(workers=2, records=RECORDS, epochs=1, delay="20ms"))
        run = self.dir / "run"
        first = self.submit(f"{ANTDT} run --launcher slurm --run-dir {run} {job}")
        log = run / "events.jsonl"
        await_true(lambda: log.exists() and "phase" in log.read_text(), 40,
                   "training begins")
        self.slurm("scancel", "--batch", "--signal=TERM", first)
        self.assertEqual(self.ended(first), 75, self.output())
        self.assert_nothing_left()
        second = self.submit(f"{ANTDT} run --launcher slurm --resume {run}")
        self.assertEqual(self.ended(second), 0, self.output())
        self.assert_nothing_left()
        counts = tally.counts(run)
        self.assertEqual((len(counts), set(counts)), (RECORDS, {1.0}))
        self.assertIn("127.0.0.12:", (run / "effective.toml").read_text())


if __name__ == "__main__":
    unittest.main()
