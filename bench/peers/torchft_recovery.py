#!/usr/bin/python3
"""How soon the survivors under torchft make their next step after a replica is killed: the comparison to
bench/python_recovery.py. Four replica groups of one process each, the model and the 10 ms a micro-batch of
bench/peers/noted_steps.py, Gloo on the CPU; a replica that was killed is started again at once. The lighthouse
and the process group have the values of torchft's own example (min_replicas 1, quorum_tick_ms 100,
join_timeout_ms 10000, timeout 5 s), or the ones that are given.

    bench/peers/torchft_recovery.py [--kills 10]     with an interpreter that has torch and torchft
"""
import argparse
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import timedelta

WORKERS = 4


def train(folder, number, timeout):
    import torch
    from torch.distributed import TCPStore
    from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(1, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
    opt = torch.optim.Adam(net.parameters())

    def load(state):
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])

    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    manager = Manager(pg=ProcessGroupGloo(timeout=timedelta(seconds=timeout)), min_replica_size=1,
                      load_state_dict=load,
                      state_dict=lambda: {"net": net.state_dict(), "opt": opt.state_dict()},
                      timeout=timedelta(seconds=timeout), rank=0, world_size=1,
                      store_addr="localhost", store_port=store.port, hostname="localhost",
                      replica_id=f"replica_{number}_")
    net_of_all = DistributedDataParallel(manager, net)
    optimizer = Optimizer(manager, opt)
    notes = os.open(f"{folder}/steps-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        before = manager.current_step()
        optimizer.zero_grad()
        time.sleep(0.01)
        net_of_all(torch.rand(16, 1)).square().mean().backward()
        optimizer.step()
        if manager.current_step() > before:
            line = f"{os.getpid()} {manager.current_step()} {manager.num_participants()} "
            os.write(notes, f"{line}{time.monotonic()}\n".encode())


class Gang:
    def __init__(self, folder, options):
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        lighthouse = pathlib.Path(sys.executable).parent / "torchft_lighthouse"
        self.log = open(folder / "log", "w")
        self.lighthouse = subprocess.Popen(
            [str(lighthouse), "--bind", f"127.0.0.1:{port}", "--min_replicas", "1",
             "--quorum_tick_ms", "100", "--join_timeout_ms", str(options.join_timeout_ms),
             "--heartbeat_timeout_ms", str(options.heartbeat_timeout_ms)], stdout=self.log,
            stderr=self.log)
        self.env = dict(os.environ, TORCHFT_LIGHTHOUSE=f"http://127.0.0.1:{port}", OMP_NUM_THREADS="1")
        self.timeout = options.timeout
        self.replicas = [None] * WORKERS
        for number in range(WORKERS):
            self.start(number)

    def start(self, number):
        self.replicas[number] = subprocess.Popen(
            [sys.executable, __file__, "--train", str(self.folder), str(number),
             "--timeout", str(self.timeout)],
            env=self.env, stdout=self.log, stderr=self.log)

    def last(self, number):
        """[process, step, participants, moment] of its last step; None before the first."""
        path = self.folder / f"steps-{number}"
        lines = path.read_text().splitlines() if path.exists() else []
        return [float(word) for word in lines[-1].split()] if lines else None

    def until(self, condition, seconds=180):
        deadline = time.monotonic() + seconds
        while not condition():
            for number, replica in enumerate(self.replicas):
                if replica.poll() is not None:
                    self.start(number)
            if time.monotonic() > deadline:
                raise SystemExit(f"torchft did not get there; see {self.folder}/log")
            time.sleep(0.005)

    def whole(self):
        found = [self.last(n) for n in range(WORKERS)]
        return all(f and f[0] == r.pid and f[2] == WORKERS and time.monotonic() - f[3] < 1
                   for f, r in zip(found, self.replicas))

    def kill_and_measure(self, victim):
        self.until(self.whole)
        before = max(self.last(n)[1] for n in range(WORKERS))
        self.replicas[victim].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        others = [n for n in range(WORKERS) if n != victim]
        # One that was under way when the victim died may have completed.
        self.until(lambda: all(self.last(n)[1] > before + 1 for n in others))
        return max(self.last(n)[3] for n in others) - killed

    def stop(self):
        for process in [*self.replicas, self.lighthouse]:
            process.kill()
            process.wait()
        self.log.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--join-timeout-ms", type=int, default=10000)
    parser.add_argument("--heartbeat-timeout-ms", type=int, default=5000)
    parser.add_argument("--timeout", type=float, default=5, help="of the process group, in seconds")
    parser.add_argument("--train", nargs=2, metavar=("FOLDER", "REPLICA"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options.train[0], int(options.train[1]), options.timeout)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="torchft-recovery-"))
    gang = Gang(folder, options)
    try:
        times = []
        for n in range(options.kills):
            times.append(gang.kill_and_measure(n % WORKERS))
            print(f"{times[-1]:.2f} s", flush=True)
        print(f"median {statistics.median(times):.2f} s, {min(times):.2f} to {max(times):.2f}")
    except BaseException:
        print((folder / "log").read_text()[-3000:], file=sys.stderr)
        raise
    finally:
        gang.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
