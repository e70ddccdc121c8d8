#!/usr/bin/env python3
"""The speed of steps while checkpoints are copied from host to host (docs/checkpoints-on-hosts.md).

    bench/steps_while_copying.py [--mb 256] [--mbit 1000] [--seconds 60] [--bin build/bin]

Two workers around a ring on emulated devices, each on a host of its own (a network and a mount
namespace; the launching host is a third one, so every checkpoint is fetched from one host and sent
to another). The wires have the given rate. The step and the bytes on the launching host's wire are
read four times a second; a quarter second counts as one with a copy if more than a tenth of the
rate went over that wire. The program prints steps/s with and without a copy: the medians and the
quartiles.
"""
import argparse
import os
import pathlib
import statistics
import sys
import time
import unittest

import runs  # which finds tests/e2e as well


def moved():
    lines = pathlib.Path("/proc/net/dev").read_text().splitlines()
    (counts,) = [line.split(":")[1].split() for line in lines if line.strip().startswith("wire:")]
    return int(counts[0]) + int(counts[8])  # received, sent


def words(rates):
    low, middle, high = statistics.quantiles(rates, n=4)
    return f"{middle:.1f} ({low:.1f} to {high:.1f}, of {len(rates)} quarter seconds)"


def measure(test, options):
    hosts = [test.add_host(name, cpus=1, size="4g") for name in ("hostb", "hostc")]
    for wire in ["wire", *(host.link_name for host in hosts)]:
        test.sh(f"tc qdisc add dev {wire} root tbf rate {options.mbit}mbit burst 1m latency 50ms")
    job = test.write("job.toml", runs.emulated_job("copies", ["antdt-trainer"], 100_000_000,
                                                   options.mb * 250_000, "10s", "10ms",
                                                   test.cluster(*hosts)))
    process, run_dir = test.launch(job)
    test.await_training(run_dir, samples=2000)
    rates = {True: [], False: []}
    before, until = None, time.monotonic() + options.seconds
    while time.monotonic() < until:
        now = (time.monotonic(), test.status(run_dir)["step"], moved())
        if before:
            seconds = now[0] - before[0]
            copying = (now[2] - before[2]) / seconds > options.mbit * 1e6 / 8 / 10
            rates[copying].append((now[1] - before[1]) / seconds)
        before = now
        time.sleep(0.25)
    kept = len(test.events(run_dir, "checkpoint"))
    test.antdt("stop", run_dir, "--grace", "5s")
    process.communicate(timeout=60)
    print(f"{kept} checkpoints of {options.mb} MB, wires of {options.mbit} Mbit/s")
    print(f"steps/s without a copy under way   {words(rates[False])}")
    print(f"steps/s with one                   {words(rates[True])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=int, default=256)
    parser.add_argument("--mbit", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--bin", default=str(runs.BIN))
    options = parser.parse_args()
    os.environ["ANTDT_BIN"] = str(pathlib.Path(options.bin).resolve())
    import separate_hosts  # which looks where the programs are
    if (reason := separate_hosts.why_not()) is not None:
        sys.exit(reason)
    if separate_hosts.INSIDE not in os.environ:
        os.environ[separate_hosts.INSIDE] = "1"
        os.execvp("unshare", ["unshare", "-rnm", sys.executable, *sys.argv])

    class Measured(separate_hosts.SeparateHosts):
        def runTest(self):
            measure(self, options)
    result = unittest.TextTestRunner(verbosity=0, stream=sys.stderr).run(Measured())
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
