"""The tracer in real ranks of a plain DDP script, whose messages are written to files."""
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs"
SITE = PROGRAMS.parent.parent.parent / "python" / "antdt" / "trace" / "site"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Trace(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def start(self, ranks, script=PROGRAMS / "plain_ddp.py", **settings):
        port = free_port()
        processes = []
        for rank in range(ranks):
            env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1",
                       ANTDT_TRACE="1", OUT=str(self.dir / "out"),
                       PYTHONPATH=f"{SITE}:{self.dir}", **settings)
            processes.append(subprocess.Popen(
                [sys.executable, str(PROGRAMS / "recorded.py"), str(script)], env=env,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            self.addCleanup(self.end, processes[-1])
        return processes

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def said(self, rank, what):
        path = self.dir / f"out.{rank}"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line[1:] for line in map(json.loads, lines) if line[0] == what]

    def test_a_slow_rank_computes_and_its_peer_waits(self):
        (self.dir / "sitecustomize.py").write_text("import builtins\nbuiltins.users_own = 1\n")
        script = self.dir / "script.py"
        script.write_text("import runpy\nassert users_own == 1\n"
                          f"runpy.run_path({str(PROGRAMS / 'plain_ddp.py')!r}, run_name='__main__')\n")
        for process in self.start(2, script, PLAIN_SLOW="0.03", PLAIN_LOADERS="1"):
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(err, "", "the tracer says nothing")
            self.assertIn("made 30 steps", out)
        of = []
        for rank in (0, 1):
            steps = self.said(rank, "step")
            self.assertEqual([s[0] for s in steps], [32] * 30, "two batches of 16 each")
            of.append([statistics.median(s[i] for s in steps[1:]) for i in (2, 3)])
            self.assertEqual(len(self.said(rank, "close")), 1)
        (compute0, wait0), (compute1, wait1) = of
        self.assertGreater(compute1, compute0 + 0.04, of)
        self.assertGreater(wait0, wait1 + 0.02, of)

    def test_ranks_that_were_asked_tell_what_they_called_and_where_they_are(self):
        processes = self.start(3, PLAIN_SKIP="10", PLAIN_SLEEP="600", PLAIN_PAUSE="0.001")
        deadline = time.monotonic() + 90
        while not all(s and s[-1][6] for s in (self.said(r, "say") for r in (0, 1))):
            self.assertLess(time.monotonic(), deadline, "ranks 0 and 1 wait in a collective")
            self.assertTrue(all(p.poll() is None for p in processes))
            time.sleep(0.1)
        (self.dir / "out.ask").touch()
        while not all(self.said(r, "tell") for r in range(3)):
            self.assertLess(time.monotonic(), deadline, "all ranks tell")
            time.sleep(0.1)
        calls = []
        for rank in range(3):
            number, inside, where, stack, told = self.said(rank, "tell")[0]
            self.assertEqual((number, bool(inside)), (1, rank != 2))
            self.assertRegex(where, r"plain_ddp.py:\d+ in main")
            self.assertIn("in main", stack)
            self.assertNotIn("antdt-trace", stack)
            calls.append([line.split("\t") for line in told.splitlines()])
        self.assertEqual(calls[0], calls[1])
        self.assertEqual(calls[2], calls[0][:-1], "all but the last")
        group, _, name, where = calls[0][-1]
        self.assertEqual((group, name), ("", "all_reduce float32[1]"))
        self.assertRegex(where, r"plain_ddp.py:\d+ in main")
        self.assertEqual(self.said(0, "say")[-1][6], "all_reduce float32[1]")

    def run_all(self, ranks, text):
        script = self.dir / "script.py"
        script.write_text(text)
        for process in self.start(ranks, script):
            out, err = process.communicate(timeout=120)
            self.assertEqual((process.returncode, err), (0, ""), out)

    def test_a_collective_is_known_by_its_work_only_while_the_script_has_it(self):
        self.run_all(1, """
import gc, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
works = sys.modules["_antdt_trace.hooks"]._works
for number in range(3):
    work = dist.all_reduce(torch.ones(1), async_op=True)
    assert [call.number for call in works.values()] == [2 * number + 1]
    while not work.is_completed():
        pass
    del work  # it is not waited for, so a later object may get its id
    gc.collect()
    assert len(works) == 0
    work = dist.all_reduce(torch.ones(1), async_op=True)
    work.wait()
    assert len(works) == 0
""")

    def test_waiting_in_backward_is_seen_though_the_last_parameter_has_no_gradient(self):
        self.run_all(2, """
import time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
    def forward(self, x):
        return self.used(x)
dist.init_process_group("gloo")
net = DistributedDataParallel(Net(), find_unused_parameters=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(12):
    loss = net(torch.randn(8, 4)).sum()
    time.sleep(0.03 * dist.get_rank())
    loss.backward()
    optimizer.step()
dist.barrier()
""")
        waits = [statistics.median(s[3] for s in self.said(rank, "step")[2:]) for rank in (0, 1)]
        self.assertGreater(waits[0], waits[1] + 0.015, waits)

    def test_outside_of_a_traced_job_nothing_is_touched(self):
        code = "import sys, torch; print('_antdt_trace' in sys.modules)"
        env = dict(os.environ, PYTHONPATH=str(SITE))
        env.pop("ANTDT_TRACE", None)
        out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        self.assertEqual((out.stdout, out.stderr), ("False\n", ""))


if __name__ == "__main__":
    unittest.main()
