"""GPUs are leased: by the real agents, from a made-up NVML that reads its devices from a file
(tests/antdtd/fake_nvml.cc). Not run on a device."""

import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
from hosts import Hosts, free_port
from harness import BIN, await_true

NVML = pathlib.Path(os.environ.get("ANTDT_FAKE_NVML",
                                   BIN.parent / "tests" / "antdtd" / "libfake_nvml.so"))
SEEN = "echo sees=$CUDA_VISIBLE_DEVICES. local=$LOCAL_RANK/$LOCAL_WORLD_SIZE. order=$CUDA_DEVICE_ORDER."


@unittest.skipUnless(NVML.exists(), f"the tests' NVML is not built: {NVML}")
class Leases(Hosts):
    def setUp(self):
        super().setUp()
        self.devices = self.dir / "devices"
        self.env["FAKE_NVML"] = str(self.devices)
        self.env.pop("CUDA_VISIBLE_DEVICES", None)
        self.gpus("a", "b")
        self.agents = {}
        self.user_keys = self.keys("keys")

    def gpus(self, *names, more={}, hang=False, init=0):
        """This host has these GPUs; `more` has further words of each. NVML begins with the error `init`."""
        lines = [f"gpu uuid=GPU-{n} name=Test memory=1000000 numa=0 cpus=0 {more.get(n, '')}\n" for n in names]
        new = self.dir / "devices.new"
        new.write_text("".join(lines) + ("hang\n" if hang else "") + f"init {init}\n")
        new.replace(self.devices)

    def host(self, name="hosta", machine=None):
        """Starts the agent of this host, again after it was killed; returns its address. Agents of one
        `machine` have the same GPUs."""
        claims = self.dir / f"claims-{machine or name}"
        claims.mkdir(exist_ok=True)
        port = self.agents[name][1] if name in self.agents else free_port()
        log = open(self.dir / f"{name}.log", "a")
        process = subprocess.Popen(
            [str(BIN / "antdtd"), "--listen", f"127.0.0.1:{port}", "--keys", str(self.user_keys),
             "--state-dir", str(self.dir / f"{name}-state"), "--host-name", name, "--socket-dir",
             str(self.runtime / name), "--address", "127.0.0.1", "--allow-root", "--nvml",
             str(NVML), "--nvml-patience", "1", "--device-claims", str(claims)],
            env=self.env, stdout=log, stderr=subprocess.STDOUT)
        log.close()
        self.addCleanup(lambda: (process.poll() is None and process.terminate(), process.wait(10)))
        self.agents[name] = (process, port)
        await_true(lambda: self.listens("127.0.0.1", port, process), 10, f"{name} listens")
        return f"127.0.0.1:{port}"

    def job(self, name, hosts, script=SEEN, resources="gpus = 1", count=1, protocol="exec", extra=""):
        """Its workers run the script, then wait until the file `name`.end is there."""
        wait = f"; while [ ! -e {self.dir}/{name}.end ]; do sleep 0.05; done"
        return self.write(f"{name}.toml", f"""
schema = 1
[job]
name = "{name}"
[roles.worker]
count = {count}
protocol = "{protocol}"
command = ["sh", "-c", '''{script}{wait}''']
resources = {{ {resources} }}
{extra}
{self.cluster(hosts, self.user_keys) if hosts else ""}""")

    def start(self, name, hosts, **how):
        process, run_dir = self.start_job(self.job(name, hosts, **how))
        return name, process, run_dir

    def end(self, job):
        name, process, run_dir = job
        (self.dir / f"{name}.end").touch()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, out + err)
        return json.loads((run_dir / "summary.json").read_text())

    def said(self, job, worker="w0.1"):
        """The first line of the worker's output."""
        path = job[2] / "logs" / f"{worker}.out"
        def line():
            self.assertIsNone(job[1].poll(), job[1].stderr.read() if job[1].poll() is not None else "")
            text = path.read_text() if path.exists() else ""
            return text.splitlines()[0] if "\n" in text else None
        return await_true(line, 30, f"{path} has a line")

    def sees(self, job, worker="w0.1"):
        return re.search(r"sees=(.*?)\.", self.said(job, worker)).group(1)

    def status(self, job):
        answer = self.antdt("status", job[2], "--json")
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def holders(self, job):
        """By device: who holds it, as the job knows."""
        status = self.status(job)
        if not status:
            return {}
        return {d["uuid"]: [(h["job"].rsplit("-", 1)[0], f"{h['worker']}.{h['attempt']}") for h in d["holders"]]
                for host in status["hosts"] for d in host.get("devices", {}).get("list", [])}

    def pid(self, job):
        return await_true(lambda: (self.status(job) or {"workers": [{}]})["workers"][0].get("pid"), 30, "a pid")

    def events(self, job, kind):
        path = job[2] / "events.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [e["text"] for e in lines if e["kind"] == kind]

    def refused(self, name, hosts, **how):
        run = self.run_job(self.job(name, hosts, **how), timeout=60)
        self.assertEqual(run.code, 3, run.explain())
        return run.err


class OneHost(Leases):
    def test_jobs_have_devices_of_their_own_and_one_more_is_refused(self):
        host = self.host()
        one = self.start("one", [host])
        two = self.start("two", [host], resources="devices = 1")  # the older name
        self.assertEqual({self.sees(one), self.sees(two)}, {"GPU-a", "GPU-b"})
        self.assertIn("order=PCI_BUS_ID. ", self.said(one) + " ")
        self.assertIn("local=0/1.", self.said(one))
        why = self.refused("three", [host])
        self.assertIn("0 GPUs free: room for 0", why)
        # Which of the two began first does not matter; what an agent leases reaches a job with its reports.
        await_true(lambda: re.search(r"GPU [01] +GPU-[ab] +Test.*one-\S+ w0",
                                     self.antdt("status", one[2]).stdout), 20, "status shows the lease")
        self.end(one)
        three = self.start("three", [host])
        self.assertIn(self.sees(three), {"GPU-a", "GPU-b"} - {self.sees(two)})
        self.end(two)
        self.end(three)

    def test_a_job_that_asks_for_no_gpus_sees_none_of_them(self):
        job = self.start("none", [self.host()], resources="cpus = 0")
        self.assertEqual(self.sees(job), "")
        self.end(job)

    def test_leases_outlive_the_agent(self):
        host = self.host()
        one = self.start("one", [host])
        self.assertEqual(self.sees(one), "GPU-a")
        pid = self.pid(one)
        for _ in range(2):
            agent, _ = self.agents["hosta"]
            agent.kill()
            agent.wait(10)
            self.host()
            two = self.start("two", [host])
            self.assertEqual(self.sees(two), "GPU-b")
            await_true(lambda: self.holders(one).get("GPU-a") == [("one", "w0.1")], 20, "one holds GPU-a")
            self.assertIn("0 GPUs free", self.refused("three", [host]))
            self.end(two)
            (self.dir / "two.end").unlink()
        self.assertEqual(self.pid(one), pid)
        self.assertEqual(self.end(one)["failures"], [])
        self.assert_free(host)

    def assert_free(self, host):
        """Both devices can be leased: nobody holds them any more."""
        both = self.start("both", [host], resources="gpus = 2")
        self.assertEqual(self.sees(both), "GPU-a,GPU-b")
        self.end(both)

    def test_a_lease_ends_with_its_process_however_that_ends(self):
        host = self.host()
        one = self.start("one", [host])
        other = self.start("other", [host])
        self.sees(one), self.sees(other)
        def shim_of(pid):
            return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        for attempt, victim in ((2, lambda p: p), (3, shim_of)):
            os.kill(victim(self.pid(one)), signal.SIGKILL)
            self.assertEqual(self.sees(one, f"w0.{attempt}"), self.sees(one), "it gets its device again")
            await_true(lambda a=attempt: self.holders(one).get(self.sees(one)) == [("one", f"w0.{a}")], 20,
                       "only the new attempt holds it")
        # Everything of the job at once, the agent too.
        agent, _ = self.agents["hosta"]
        pid = self.pid(one)
        shim = shim_of(pid)
        for victim in (agent.pid, shim, pid):
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it dies with its shim
        agent.wait(10)
        self.host()
        self.assertEqual(self.sees(one, "w0.4"), self.sees(one))
        self.end(one)
        self.end(other)
        self.assert_free(host)

    def test_shared_gpus_are_for_those_who_share(self):
        host = self.host()
        jobs = [self.start(f"job{n}", [host], resources="gpus = 1, shared_gpus = true") for n in range(3)]
        seen = [self.sees(job) for job in jobs]
        self.assertEqual({seen.count("GPU-a"), seen.count("GPU-b")}, {1, 2})
        self.assertIn("0 GPUs free", self.refused("alone", [host]))
        for job in jobs:
            self.end(job)
        self.assert_free(host)

    def test_workers_run_near_their_gpus_unless_told_not_to(self):
        host = self.host()
        script = "grep Cpus_allowed_list /proc/self/status"
        bound = self.start("bound", [host], script=script)
        free = self.start("free", [host], script=script, resources="gpus = 1, bind_to_gpus = false")
        allowed = pathlib.Path("/proc/self/status").read_text().split("Cpus_allowed_list:")[1].split()[0]
        self.assertEqual(self.said(bound).split()[1], "0")
        self.assertEqual(self.said(free).split()[1], allowed)
        self.end(bound)
        self.end(free)


class TwoAgents(Leases):
    def test_agents_of_one_machine_lease_no_gpu_twice_even_while_one_is_gone(self):
        first, second = self.host(machine="both"), self.host("hostb", machine="both")
        one = self.start("one", [first])
        two = self.start("two", [second])
        self.assertEqual({self.sees(one), self.sees(two)}, {"GPU-a", "GPU-b"})
        why = self.refused("three", [first])
        self.assertIn("0 GPUs free: room for 0", why)
        self.assertRegex(why, "GPU [01] is leased by another agent of that machine")
        await_true(lambda: re.search(r"GPU [01] .*leased by another agent of the machine",
                                     self.antdt("status", two[2]).stdout), 20, "status says it")
        # An agent that is killed keeps what its processes have.
        agent, _ = self.agents["hosta"]
        agent.kill()
        agent.wait(10)
        self.assertIn("0 GPUs free", self.refused("four", [second]))
        self.host(machine="both")
        await_true(lambda: self.holders(one).get(self.sees(one)) == [("one", "w0.1")], 20, "it has it again")
        self.end(one)
        def runs():
            return self.run_job(self.job("five", [second], script=f"{SEEN}; exit 0"), timeout=60).code == 0
        await_true(runs, 30, "what the first agent gave back is leased by the second")
        self.end(two)


class Torchrun(Leases):
    def test_cuda_local_rank_is_the_ranks_own_device(self):
        self.gpus("a", "b", "c")
        host = self.host()
        first = self.start("first", [host])
        self.assertEqual(self.sees(first), "GPU-a")
        job = self.start("script", [host], count=2, protocol="torchrun")
        for rank in (0, 1):
            said = self.said(job, f"w{rank}.1")
            self.assertIn("sees=GPU-b,GPU-c.", said)
            self.assertIn(f"local={rank}/2.", said)
        await_true(lambda: self.holders(job) == {"GPU-a": [("first", "w0.1")], "GPU-b": [("script", "w0.1")],
                                                "GPU-c": [("script", "w1.1")]}, 20, "who holds what")
        # All are started again together, on the same devices.
        os.kill(self.pid(job), signal.SIGKILL)
        for rank in (0, 1):
            self.assertIn("sees=GPU-b,GPU-c.", self.said(job, f"w{rank}.2"))
        self.end(job)
        self.end(first)

    def test_mig_instances_are_devices_of_their_own(self):
        self.gpus("a", "b", more={"b": "mig=MIG-x,MIG-y"})
        host = self.host()
        whole = self.start("whole", [host])
        self.assertEqual(self.sees(whole), "GPU-a")
        job = self.start("parts", [host], count=2, protocol="torchrun")
        for rank, own in ((0, "MIG-x"), (1, "MIG-y")):
            said = self.said(job, f"w{rank}.1")
            self.assertIn(f"sees={own}.", said)
            self.assertIn("local=0/1.", said)
        self.assertIn("0 GPUs free", self.refused("more", [host]))
        self.end(job)
        self.end(whole)


class Health(Leases):
    def test_an_unhealthy_device_is_not_leased_and_the_reason_is_shown(self):
        self.gpus("a", "b", more={"a": "ecc=3"})
        host = self.host()
        job = self.start("job", [host])
        self.assertEqual(self.sees(job), "GPU-b")
        self.assertRegex(self.antdt("status", job[2]).stdout, r"GPU 0 .*not leased: 3 uncorrected ECC errors")
        why = self.refused("two", [host], resources="gpus = 2")
        self.assertIn("0 GPUs free: room for 0\n    GPU 0 is not leased: 3 uncorrected ECC errors", why)
        doctor = self.antdt("doctor", "--hosts", host, "--keys", self.user_keys)
        self.assertIn("3 uncorrected ECC errors", doctor.stdout)
        self.assertIn("GPU-b is held by", doctor.stdout)
        self.end(job)

    def test_a_device_that_fails_under_its_worker_is_the_cause_of_the_failure(self):
        host = self.host()
        job = self.start("job", [host], script=f"{SEEN}; [ -e fail ] && exit 7",
                         extra='env = { X = "1" }')
        self.assertEqual(self.sees(job), "GPU-a")
        self.gpus("a", "b", more={"a": "lost=1"})
        await_true(lambda: self.events(job, "device"), 20, "the job is told")
        self.assertIn("a device of w0 on hosta is not healthy: GPU 0 (GPU-a): it has fallen off the bus",
                      self.events(job, "device")[0])
        os.kill(self.pid(job), signal.SIGABRT)
        self.assertEqual(self.sees(job, "w0.2"), "GPU-b")
        failure = self.end(job)["failures"][0]
        self.assertEqual(failure["class"], "device")
        self.assertIn("GPU 0 (GPU-a): it has fallen off the bus", failure["cause"])

    def test_a_worker_that_dies_before_the_next_look_has_the_evidence_all_the_same(self):
        host = self.host()
        job = self.start("job", [host])
        self.assertEqual(self.sees(job), "GPU-a")
        pid = self.pid(job)
        self.gpus("a", "b", more={"a": "lost=1"})
        os.kill(pid, signal.SIGABRT)  # as a program does when CUDA fails
        self.assertEqual(self.sees(job, "w0.2"), "GPU-b")
        self.assertEqual([f["class"] for f in self.end(job)["failures"]], ["device"])

    def test_nvml_that_does_not_answer_blocks_nobody(self):
        host = self.host()
        job = self.start("job", [host])
        self.sees(job)
        self.gpus("a", "b", hang=True)
        await_true(lambda: self.events(job, "device"), 20, "the job is told")
        self.assertIn("hosta leases no GPUs now: NVML", self.events(job, "device")[0])
        self.assertIn("has not answered for more than 1 s", self.antdt("status", job[2]).stdout)
        self.assertRegex(self.refused("other", [host]), "0 GPUs free.*\n.*no GPU is leased: NVML .* has not answered")
        # What needs none of them goes on.
        quick = self.run_job(self.write("quick.toml", self.job("quick", [host], resources="cpus = 0").read_text()
                                        .replace("; while", "; exit 0; while")), timeout=60)
        self.assert_done(quick)
        self.gpus("a", "b")
        await_true(lambda: len(self.events(job, "device")) > 1, 20, "it answers again")
        other = self.start("other", [host])
        self.assertEqual(self.sees(other), "GPU-b")
        self.end(other)
        self.end(job)

    def test_an_agent_that_begins_while_nvml_hangs_serves_and_leases_later(self):
        self.gpus("a", hang=True)
        host = self.host()
        self.assertIn("0 GPUs free", self.refused("early", [host]))
        self.gpus("a")
        def leases():
            run = self.run_job(self.job("late", [host], script=f"{SEEN}; exit 0"), timeout=60)
            return run.code == 0
        await_true(leases, 30, "it leases its device")


    def test_an_agent_that_begins_before_nvml_does_leases_nothing_twice_and_leases_later(self):
        host = self.host()
        one = self.start("one", [host])
        self.assertEqual(self.sees(one), "GPU-a")
        agent, _ = self.agents["hosta"]
        agent.kill()
        agent.wait(10)
        self.gpus("a", "b", init=18)  # the driver was upgraded, and the machine was not started anew
        self.host()
        self.assertRegex(self.refused("early", [host]),
                         "0 GPUs free.*\n.*no GPU is leased: .*does not begin.* another version")
        await_true(lambda: [e for e in self.events(one, "device") if "leases no GPUs now" in e], 20,
                   "the job is told")
        self.gpus("a", "b")
        def leases():
            run = self.run_job(self.job("late", [host], script=f"{SEEN}; exit 0"), timeout=60)
            return run.code == 0
        await_true(leases, 60, "it leases what is free")
        await_true(lambda: self.holders(one).get("GPU-a") == [("one", "w0.1")], 20, "one has its GPU")
        self.assertEqual(self.end(one)["failures"], [])


class OneMachine(Leases):
    """A private agent, which finds NVML by its usual name."""

    def setUp(self):
        super().setUp()
        (self.dir / "libnvidia-ml.so.1").symlink_to(NVML)
        self.env["LD_LIBRARY_PATH"] = str(self.dir)
        # Private agents claim devices among all agents of this machine, so these have names of their own.
        self.names = [f"test-{os.getpid()}-{n}" for n in "ab"]
        self.gpus(*self.names)
        for name in self.names:
            self.addCleanup(pathlib.Path(f"/run/lock/antdt-device-GPU-{name}").unlink, missing_ok=True)

    def test_two_jobs_of_this_machine_have_gpus_of_their_own(self):
        one = self.start("one", [])
        first = self.sees(one)
        two = self.start("two", [])
        self.assertEqual({first, self.sees(two)}, {f"GPU-{name}" for name in self.names})
        self.assertRegex(self.refused("three", []), "GPU [01] is leased by another agent of that machine")
        self.end(one)
        self.end(two)

    def test_a_job_of_this_machine_leases_its_gpus(self):
        self.env["CUDA_VISIBLE_DEVICES"] = "1"  # as an allocation of Slurm sets it
        job = self.start("job", [])
        self.assertEqual(self.sees(job), f"GPU-{self.names[1]}")
        self.end(job)
        self.assertIn("1 GPUs free: room for 1", self.refused("two", [], count=2))

    def test_a_job_that_asks_for_no_gpus_sees_what_its_user_sees(self):
        self.env["CUDA_VISIBLE_DEVICES"] = "1"
        job = self.start("job", [], resources="cpus = 0")
        self.assertEqual(self.sees(job), "1")
        self.end(job)


if __name__ == "__main__":
    unittest.main()
