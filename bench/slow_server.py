#!/usr/bin/env python3
"""How soon a job is as fast as before when one of its parameter servers becomes slow.

    bench/slow_server.py [--sync ps-asp] [--replicas 1] [--runs 3] [--persistent 10] [--json]

Two agents on 127.0.0.1 are two hosts. Two servers take 3 ms for a request, much longer than they
compute, so that the result is valid on 2 cores; four workers wait for them. Then s0 becomes three
times slower on its host (`antdt inject`), and AntDT-ND moves it to the other host. Speeds are
computed from the samples in `antdt status`, over two seconds.

The goal is a median of 0.8 of the previous speed, within the persistent window and 10 s more. The
exit code is 1 if the goal is missed, or if the audit shows that the job repeated or lost a record
before it was stopped. Three runs take four minutes; the machine should be idle.
"""
import pathlib
import statistics
import subprocess
import tempfile
import time

from runs import Place, finish, options, progress, spread, spread_text

from hosts import free_port  # of the end-to-end tests

JOB = """
schema = 1
[job]
name = "slow-server"
epochs = 1
seed = 11
[cluster]
hosts = [{hosts}]
keys = "{keys}"
[roles.worker]
count = 4
[roles.server]
count = 2
replicas = {replicas}
[data]
format = "index"
records = 100000000
[batch]
global = 256
[trainer]
model = "tally"
sync = "{sync}"
staleness = 4
[control]
mode = "act"
solution = "nd"
transient_window = "2s"
persistent_window = "{persistent}s"
allow = ["kill-restart"]
[checkpoint]
every = "0s"
[[inject]]
workers = ["s0", "s1", "s2", "s3"]
delay = "3ms"
"""
WINDOW_S = 2.0
BEFORE_S = 12.0
ENOUGH = 0.8  # of the speed before
ALLOWED_S = 10.0  # after the persistent window
GIVE_UP_S = 30.0  # after the persistent window


class Hosts:
    """Two agents on 127.0.0.1."""

    def __init__(self, place):
        place.antdt("keygen", "--dir", place.directory / "keys")
        self.agents, self.addresses = [], []
        for name in ("hosta", "hostb"):
            port = free_port()
            self.addresses.append(f'"127.0.0.1:{port}"')
            with open(place.directory / f"{name}.log", "w", encoding="utf-8") as log:
                self.agents.append(subprocess.Popen(
                    [str(pathlib.Path(place.program).with_name("antdtd")), "--listen",
                     f"127.0.0.1:{port}", "--keys", str(place.directory / "keys"), "--state-dir",
                     str(place.directory / f"{name}-state"), "--host-name", name, "--socket-dir",
                     str(place.directory / "rt" / name), "--address", "127.0.0.1",
                     "--allow-root"], stdout=log, stderr=subprocess.STDOUT, env=place.env))

    def end(self):
        for agent in self.agents:
            agent.terminate()
            agent.wait(10)


def slow_down(place, run):
    """Slows server s0 down on its present host; returns when that began."""
    status = run.until(lambda s: True, 10, "a status")
    host = next(s["host"] for s in status["servers"] if s["id"] == "s0")
    place.antdt("inject", run.directory, 'workers=["s0"]', f'host="{host}"', "slowdown=3")
    return time.monotonic()


def watch_recovery(args, run, injected, before):
    """The speed as parts of the previous speed, over two seconds from each status on; and since
    when it is ENOUGH except for moments (None: never)."""
    run.watch(args.persistent + GIVE_UP_S)
    last = run.seen[-1][0]
    shares = [(t - injected, run.speed(t, t + WINDOW_S) / before) for t, _ in run.seen
              if injected <= t <= last - WINDOW_S]
    back = next((t for i, (t, share) in enumerate(shares) if share >= ENOUGH and
                 statistics.median(s for u, s in shares[i:] if u <= t + 5) >= ENOUGH), None)
    return shares, back


def measure_job(args, place, hosts):
    run = place.start("run", JOB.format(
        hosts=", ".join(hosts.addresses), keys=place.directory / "keys", replicas=args.replicas,
        sync=args.sync, persistent=args.persistent))
    try:
        run.until(lambda s: s["samples_done"] > 0, 60, "a job that trains")
        run.watch(3)  # caches, connections
        began = time.monotonic()
        run.watch(BEFORE_S)
        before = run.speed(began, time.monotonic())
        injected = slow_down(place, run)
        shares, back = watch_recovery(args, run, injected, before)
        actions = [f"{a['kind']} {a['target']}" for a in run.until(
            lambda s: True, 10, "a status")["actions"] if a["outcome"] == "applied"]
    finally:
        run.stop()
    epochs = place.audit(run.directory)["epochs"]
    return {"before": before, "back_s": back, "actions": actions,
            "slow": statistics.median(s for t, s in shares if t < args.persistent),
            "after": back and statistics.median(s for t, s in shares if t >= back),
            "exact": all(e["repeated"] == e["lost"] == 0 for e in epochs)}


def measure(args):
    with tempfile.TemporaryDirectory(prefix="antdt-bench-") as directory:
        place = Place(directory, args.bin)
        hosts = Hosts(place)
        try:
            found = measure_job(args, place, hosts)
        finally:
            hosts.end()
    progress(str(found))
    return found


def tell(result):
    for run in result["runs"]:
        back = "never" if run["back_s"] is None else \
            f"after {run['back_s']:.1f} s, then {run['after']:.2f}"
        print(f"{run['before']:,.0f} samples/s; slow {run['slow']:.2f} of it; {ENOUGH:.1f} again "
              f"{back} ({', '.join(run['actions'])})"
              f"{'' if run['exact'] else '; records were repeated or lost'}")
    if result["back"]:
        print(f"{ENOUGH:.1f} again after {spread_text(result['back'], '{:.1f}')} s; asked for: "
              f"{result['allowed_s']:.0f}{'' if result['good'] else ', NOT REACHED'}")


def main():
    parser = options(__doc__, runs=3)
    parser.add_argument("--sync", default="ps-asp", choices=["ps-bsp", "ps-ssp", "ps-asp"])
    parser.add_argument("--replicas", type=int, default=1, choices=[1, 2])
    parser.add_argument("--persistent", type=int, default=10, help="window in seconds")
    args = parser.parse_args()
    runs = [measure(args) for _ in range(args.runs)]
    allowed = args.persistent + ALLOWED_S
    backs = [run["back_s"] for run in runs if run["back_s"] is not None]
    back = spread(backs) if len(backs) == len(runs) else None
    finish(args, {"runs": runs, "back": back, "allowed_s": allowed,
                  "good": back is not None and back["median"] <= allowed and
                  all(run["exact"] for run in runs)}, tell)


if __name__ == "__main__":
    main()
