#!/usr/bin/env python3
"""Makes the runs of this release that later ones are to resume: ANTDT_BIN=DIR make.py. See README.md."""

import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import shared  # noqa: F401 (finds what follows)
import server_jobs
import tally
from harness import ANTDT, BIN, await_true

HERE = pathlib.Path(__file__).resolve().parent
RECORDS, EPOCHS = 2000, 2
STOP_AFTER = RECORDS + 600  # in the second epoch
JOBS = {
    "allreduce": tally.job(workers=2, records=RECORDS, epochs=EPOCHS, delay="20ms"),
    "servers": server_jobs.job(workers=2, records=RECORDS, epochs=EPOCHS, delay="20ms"),
}
LEFT_OUT = (".log", ".ballast", ".lock")
TEXTS = (".json", ".toml")


def antdt(*words):
    return subprocess.run([ANTDT, *map(str, words)], check=True, capture_output=True, text=True,
                          env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": "/nonexistent"}).stdout


def stopped_run(job, top):
    (top / "job.toml").write_text(job)
    run = top / "run"
    antdt("run", top / "job.toml", "--run-dir", run, "--detach")
    await_true(lambda: json.loads(antdt("status", run, "--json"))["samples_done"] >= STOP_AFTER, 60,
               "it is in its second epoch")
    antdt("stop", run)
    await_true(lambda: (run / "summary.json").exists(), 60, "it has stopped")
    state = json.loads((run / "summary.json").read_text())["state"]
    assert state == "stopped", state
    return run


def pack(run, top, out):
    with tarfile.open(out, "w:xz", preset=9) as archive:
        for path in sorted(run.rglob("*")):
            name = str(path.relative_to(run))
            if not path.is_file() or name.startswith("logs/") or path.name.endswith(LEFT_OUT):
                continue
            data = path.read_bytes()
            if path.suffix in TEXTS:
                for place, word in ((run, b"@RUN@"), (top, b"@RUN@/.."), (BIN, b"@BIN@")):
                    data = data.replace(str(place).encode(), word)
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o600
            archive.addfile(info, io.BytesIO(data))


def main():
    version = antdt("--version").split()[-1]
    for name, job in JOBS.items():
        out = HERE / f"run-{version}-{name}.tar.xz"
        if out.exists():
            print(f"{out.name} is there, and is kept as it is")
            continue
        with tempfile.TemporaryDirectory(prefix="antdt-kept-") as top:
            pack(stopped_run(job, pathlib.Path(top)), pathlib.Path(top), out)
        print(f"{out.name}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    sys.exit(main())
