#!/usr/bin/python3
"""What the promises of delivery cost when one of two parameter servers is killed.

    bench/delivery.py [--kills 3] [--every 5s] [--sync ps-asp] [--bin build/bin]

Trains the model `tally3` with 3 workers (each waits 10 ms per batch, so that speeds are equal on
any machine) and 2 servers, under each `data.delivery`. Each run waits for a checkpoint, and kills
s1 with SIGKILL during the next interval. The program prints how long it took

    on        until the workers trained again, in the next generation
    regained  until as many records were trained as when it was killed

and, from the audit of the whole run, how many records were repeated or lost. Under exactly-once,
`regained` is the cost of training records again, although the model does not contain them twice.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import tally  # noqa: E402

MODES = ("exactly-once", "at-least-once", "at-most-once")


def job(delivery, sync, every, records):
    text = tally.job(workers=3, records=records, epochs=1, batch=96, delay="10ms", extra=f"""
[roles.server]
count = 2
[failure]
budgets = {{ signal = 1000 }}
[checkpoint]
every = "{every}"
""")
    text = text.replace('model = "tally"', 'model = "tally3"').replace("allreduce", sync)
    return text.replace('format = "index"', f'format = "index"\ndelivery = "{delivery}"')


class Run:
    def __init__(self, binaries, directory, text):
        self.antdt, self.run = str(binaries / "antdt"), directory / "run"
        (directory / "rt").mkdir(mode=0o700)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(directory / "rt"),
                        XDG_CACHE_HOME=str(directory / "cache"))
        (directory / "job.toml").write_text(text)
        self.process = subprocess.Popen(
            [self.antdt, "run", str(directory / "job.toml"), "--run-dir", str(self.run)],
            env=self.env, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, *words):
        done = subprocess.run([self.antdt, *words, str(self.run), "--json"], env=self.env,
                              capture_output=True, text=True)
        return json.loads(done.stdout) if done.stdout.startswith("{") else None

    def until(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            status = self.ask("status")
            if status and condition(status):
                return status
        raise SystemExit("the job did not get there")

    def checkpoints(self):
        found = self.run / "checkpoints"
        return len([p for p in found.iterdir() if p.name.startswith("s")]) if found.exists() else 0

    def kill_a_server(self, after):
        """Seconds until training went on, and until it had regained its previous progress."""
        self.until(lambda s: self.checkpoints() > 0)
        time.sleep(after)
        before = self.ask("status")
        victim = next(s for s in before["servers"] if s["id"] == "s1")
        began = time.monotonic()
        os.kill(victim["pid"], signal.SIGKILL)
        first = self.until(lambda s: s["generation"] > before["generation"] and
                           s["state"] == "training")
        self.until(lambda s: s["samples_done"] > first["samples_done"])
        on = time.monotonic() - began
        self.until(lambda s: s["samples_done"] >= before["samples_done"])
        return on, time.monotonic() - began

    def accounts(self):
        code = self.process.wait(timeout=600)
        audit = self.ask("data", "audit")
        epoch = audit["epochs"][0]
        return code, epoch["repeated"], epoch["lost"]


def seconds_of(text):
    return float(re.fullmatch(r"([0-9.]+)s", text).group(1))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--kills", type=int, default=3)
    options.add_argument("--every", default="5s", help="between checkpoints, in seconds")
    options.add_argument("--sync", default="ps-asp", choices=("ps-asp", "ps-ssp"))
    options.add_argument("--records", type=int, default=200000)
    options.add_argument("--bin", default="build/bin", type=pathlib.Path)
    args = options.parse_args()
    print(f"{'delivery':14} {'on':>7} {'regained':>9} {'repeated':>9} {'lost':>9}  exit")
    for mode in MODES:
        rows = []
        for _ in range(args.kills):
            directory = pathlib.Path(tempfile.mkdtemp(prefix="antdt-bench-"))
            run = Run(args.bin.resolve(), directory,
                      job(mode, args.sync, args.every, args.records))
            try:
                rows.append((*run.kill_a_server(0.6 * seconds_of(args.every)), *run.accounts()))
            finally:
                if run.process.poll() is None:
                    subprocess.run([run.antdt, "stop", str(run.run)], env=run.env,
                                   capture_output=True)
                    run.process.wait(timeout=60)
            shutil.rmtree(directory, ignore_errors=True)
        on, regained, codes, repeated, lost = zip(*rows)
        print(f"{mode:14} {statistics.median(on):6.2f}s {statistics.median(regained):8.2f}s "
              f"{statistics.median(repeated):9.0f} {statistics.median(lost):9.0f}  "
              f"{sorted(set(codes))}", flush=True)


if __name__ == "__main__":
    main()
