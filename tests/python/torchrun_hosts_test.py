"""`antdt torchrun --hosts` over agents at addresses of their own: ranks, their rendezvous, and a
hang whose cause is on another host than rank 0."""
import json
import re
import unittest

import python_jobs
from hosts import Hosts
from plain_jobs import SCRIPT, PlainJobs

WRAPPED = f"""
import os, runpy, sys
os.environ.update(word.split("=", 1) for word in sys.argv[1:])
print("at", *(os.environ[n] for n in ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                      "MASTER_ADDR", "MASTER_PORT")), flush=True)
runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
"""


@python_jobs.needs_torch
class TorchrunHosts(PlainJobs, Hosts):
    def test_the_ranks_of_two_hosts_meet_and_a_hang_shows_the_stacks_of_both(self):
        script = self.write("train.py", WRAPPED)
        keys = self.keys("keys")
        hosts = [self.agent("one", keys, address="127.0.0.2"),
                 self.agent("two", keys, address="127.0.0.3")]
        run_dir = self.dir / "run"
        self.env["PYTHON_EXEC"] = python_jobs.PYTHONS[0]
        done = self.antdt("torchrun", "--hosts", ",".join(hosts), "--nnodes", "2", "--nproc-per-node", "2",
                          "--run-dir", run_dir, "--set", f'cluster.keys="{keys}"',
                          "--set", 'failure.hang_after="6s"', script,
                          "PLAIN_STEPS=11", "PLAIN_SKIP=10", "PLAIN_PAUSE=0.001", timeout=180)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        logs = {path.name: path.read_text() for path in (run_dir / "logs").glob("*.out")}
        places = sorted(re.search(r"^at (.*)$", text, re.M).group(1).split() for text in logs.values())
        self.assertEqual([place[:6] for place in places],
                         [["0", "0", "0", "4", "2", "127.0.0.2"], ["1", "1", "0", "4", "2", "127.0.0.2"],
                          ["2", "0", "1", "4", "2", "127.0.0.2"], ["3", "1", "1", "4", "2", "127.0.0.2"]])
        self.assertEqual(len({place[6] for place in places}), 1, "one port for all")
        summary = json.loads((run_dir / "summary.json").read_text())
        hang = summary["hang"]
        self.assertRegex(hang["text"], r"^w2 never entered all_reduce float32\[1\] #\d+ ")
        self.assertEqual(hang["culprits"], ["w2"])
        self.assertEqual([s["worker"] for s in hang["stacks"]], ["w0", "w1", "w2", "w3"])
        for stack in hang["stacks"]:
            self.assertRegex(stack["stack"], r"plain_ddp.py\", line \d+, in main")
        started = (run_dir / "events.jsonl").read_text()
        for worker, host in (("w0", "one"), ("w1", "one"), ("w2", "two"), ("w3", "two")):
            self.assertIn(f"{worker} started on {host} ", started)


if __name__ == "__main__":
    unittest.main()
