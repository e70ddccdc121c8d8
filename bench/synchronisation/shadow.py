"""What exchanges in the background cost and give (sync = "shadow-easgd", "shadow-ma" and "shadow-bmuf"), and the rows of
"hybrid": a model of clicks or ratings, four workers on one host and two servers on another, with a wire between them on
which a message takes a given time.

    unshare -rn python3 bench/synchronisation/shadow.py [--rows N] [--ms M] [--compute MS] [--seeds N] [--alpha A]
        [--optimizer NAME] [--lr RATE] [--model NAME] [--epochs N] [--only NAME ...] [--on made-up|criteo|movielens]
        [--apart]

`--on criteo`: the first 8,000 clicks of criteo_kaggle_10k are trained, and the last 2,000 evaluated. `--on movielens`:
whether a rating of movielens_latest_small is 4 or more, from the user, the film and its genres; a fifth of the ratings,
by chance, is evaluated. Both are archives in $ANTDT_TEST_DATA (default: ../shared/data).

Each batch takes `--compute` ms longer than it does, so that the speed does not depend on who else computes on this
machine. Goals: training waits for exchanges less than 1 % of its time, and its speed is at least 0.97 of that without
exchanges. Log loss and AUC are those of the evaluation after each epoch. `--alpha` is the share of the distance that an
exchange takes away, in all kinds with exchanges; without it, the share is the product's default.
"""
import argparse
import csv
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from quality import unpack, write_clicks  # noqa: E402
from runs import BIN, ROOT  # noqa: E402

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from harness import await_true  # noqa: E402

ARCHIVES = pathlib.Path(os.environ.get("ANTDT_TEST_DATA", ROOT.parent / "shared" / "data"))
HERE, THERE = "10.77.0.1", "10.77.0.2"
KINDS = {  # with how often workers exchange: 0: always, in the background; None: there are no exchanges
    "background": ("shadow-easgd", 0),
    "never": ("shadow-easgd", 1000000),
    "every 5th": ("shadow-easgd", 5),
    "ma": ("shadow-ma", 0),
    "bmuf": ("shadow-bmuf", 0),
    "ps-asp": ("ps-asp", None),
    "ps-bsp": ("ps-bsp", None),
    "hybrid": ("hybrid", None),
    "allreduce": ("allreduce", None),
}


def job(options, kind, seed, place):
    sync, every = KINDS[kind]
    more = "" if every is None else f"shadow = {{ every = {every}, alpha = {options.alpha} }}"
    servers = """[roles.server]
count = 2
command = ["antdt-server"]
resources = { cpus = 0.5, memory = "9GiB" }
""" if sync != "allreduce" else ""
    slower = f'[[inject]]\nworkers = ["w0", "w1", "w2", "w3"]\ndelay = "{options.compute}ms"\n' if options.compute else ""
    return f"""schema = 1
[job]
name = "shadow"
epochs = {options.epochs}
seed = {seed}
[roles.worker]
count = 4
command = ["antdt-trainer"]
resources = {{ cpus = 1.2 }}
{servers}[data]
format = "criteo"
paths = ["{options.data}/train.tsv"]
eval_paths = ["{options.data}/eval.tsv"]
hash_buckets = 65536
[batch]
global = {options.batch}
[trainer]
model = "{options.model}"
sync = "{sync}"
optimizer = "{options.optimizer}"
lr = {options.lr}
{more}
[cluster]
hosts = ["{HERE}:7700", "{THERE}:7700"]
keys = "{place}/keys"
{slower}"""


class Place:
    """Two hosts with a slow wire between them, inside the namespaces of this process."""

    def __init__(self, directory, ms, apart):
        self.directory, self.ended = pathlib.Path(directory), []
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(self.directory), HOME=str(self.directory))
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        other = self.begin(["unshare", "-n", "sleep", "infinity"])
        own = os.readlink("/proc/self/ns/net")
        await_true(lambda: os.readlink(f"/proc/{other.pid}/ns/net") != own, 10, "a namespace")
        wire = self.begin([sys.executable, ROOT / "tests" / "e2e" / "slow_wire.py", HERE, other.pid, THERE,
                           ms / 2], stdout=subprocess.PIPE, text=True)
        assert wire.stdout.readline() == "ready\n", "the wire is not there"
        inside = ["nsenter", "-t", other.pid, "-n"]
        subprocess.run([str(w) for w in [*inside, "ip", "link", "set", "lo", "up"]], check=True)
        subprocess.run([BIN / "antdt", "keygen", "--dir", self.directory / "keys"], check=True,
                       stdout=subprocess.DEVNULL)
        self.workers_on = {"hosta", "hostb"} if apart else {"hosta"}
        self.agent("hosta", HERE, [], 3 if apart else 5, "8GiB")  # too little memory for a server
        self.agent("hostb", THERE, inside, 4 if apart else 1, "20GiB")  # CPUs for two workers, or for none

    def begin(self, words, **options):
        process = subprocess.Popen([str(w) for w in words], env=self.env, **options)
        self.ended.append(process)
        return process

    def agent(self, name, address, enter, cpus, memory):
        log = self.directory / f"{name}.log"
        with open(log, "w", encoding="utf-8") as out:
            self.begin([*enter, BIN / "antdtd", "--listen", f"{address}:7700", "--keys", self.directory / "keys",
                        "--state-dir", self.directory / f"{name}-state", "--host-name", name, "--socket-dir",
                        self.directory / name, "--cpus", cpus, "--memory", memory, "--allow-root"], stdout=out,
                       stderr=subprocess.STDOUT)
        await_true(lambda: "listening" in log.read_text(), 30, f"{name} listens")

    def run(self, name, text):
        file = self.directory / f"{name}.toml"
        file.write_text(text, encoding="utf-8")
        run = self.directory / name
        done = subprocess.run([BIN / "antdt", "run", file, "--run-dir", run], env=self.env,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{name}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
        hosts = {role: {process["host"] for process in summary[role]} for role in ("workers", "servers")}
        assert hosts["workers"] == self.workers_on and hosts["servers"] <= {"hostb"}, f"they are on {hosts}"
        return summary

    def end(self):
        for process in reversed(self.ended):
            process.terminate()
        for process in self.ended:
            process.wait(30)


def write_ratings(archives, directory):
    """As lines of Criteo's format: no numbers, and categories only."""
    unpack(archives, "movielens_latest_small", directory)

    def table(name):
        with open(directory / "movielens_latest_small" / name, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    genres = {film["movieId"]: film["genres"].split("|") for film in table("movies.csv")}
    names = sorted({name for some in genres.values() for name in some})
    lines = []
    for rating in table("ratings.csv"):
        categories = [int(rating["userId"]), int(rating["movieId"]),
                      *sorted(map(names.index, genres[rating["movieId"]]))]
        categories = [f"{number:x}" for number in categories] + [""] * (26 - len(categories))
        lines.append("\t".join([str(int(float(rating["rating"]) >= 4)), *[""] * 13, *categories]) + "\n")
    random.Random(7).shuffle(lines)
    evaluated = len(lines) // 5
    (directory / "train.tsv").write_text("".join(lines[evaluated:]), encoding="utf-8")
    (directory / "eval.tsv").write_text("".join(lines[:evaluated]), encoding="utf-8")


def write_data(options, directory):
    if options.on == "made-up":
        subprocess.run([BIN / "antdt", "data", "synth", "criteo", "--rows", str(options.rows), "--seed", "7", "--out",
                        directory], check=True, stdout=subprocess.DEVNULL)
        return
    directory.mkdir()
    (write_clicks if options.on == "criteo" else write_ratings)(ARCHIVES, directory)


def figures(summary):
    found = [w.get("exchanges") for w in summary["workers"]]
    found = [e for e in found if e]
    count = sum(e["count"] for e in found)
    training = summary["training_seconds"]
    return {
        "samples_per_second": summary["samples_trained"] / training,
        **{f"{key} {number}": epoch["eval"][key] for key in ("log_loss", "auc")
           for number, epoch in enumerate(summary["epochs"], 1)},
        "exchanges": count,
        "gap_steps": sum(e["count"] * e["mean_gap_steps"] for e in found) / count if count else 0,
        "gap_ms": sum(e["count"] * e["mean_gap_ms"] for e in found) / count if count else 0,
        "waited_share": sum(e["waited_seconds"] for e in found) / (training * len(summary["workers"])),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40000)
    parser.add_argument("--on", choices=["made-up", "criteo", "movielens"], default="made-up")
    parser.add_argument("--ms", type=float, default=20, help="of a round trip")
    parser.add_argument("--compute", type=int, default=60)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", default="1e-3")
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--model", default="deepfm")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--alpha", type=float, default=0, help="share of an exchange; 0: the default, 1 / workers")
    parser.add_argument("--apart", action="store_true", help="two of the workers are on the servers' host")
    parser.add_argument("--only", nargs="*", choices=list(KINDS), default=list(KINDS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shadow") as directory:
        place = Place(directory, options.ms, options.apart)
        try:
            options.data = place.directory / "data"
            write_data(options, options.data)
            all_found = {}
            for seed in range(1, options.seeds + 1):
                for kind in options.only:
                    found = figures(place.run(f"{kind.replace(' ', '-')}-{seed}", job(options, kind, seed,
                                                                                      place.directory)))
                    all_found.setdefault(kind, []).append(found)
                    print(kind, seed, json.dumps(found), flush=True)
        finally:
            place.end()
    for kind, found in all_found.items():
        print(f"{kind:12}", *(f"{key} {statistics.mean(f[key] for f in found):.5g} "
                              f"({min(f[key] for f in found):.5g} to {max(f[key] for f in found):.5g})"
                              for key in found[0]))


if __name__ == "__main__":
    main()
