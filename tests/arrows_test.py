#!/usr/bin/env python3
"""Walks every #include and fails on an arrow that ARCHITECTURE.md does not allow.

Also checks what the house style counts: a main.cc has fewer than 150 lines, a
source or header fewer than 500. And no header has an anonymous namespace, of
which a unity build keeps the compiler from warning.
"""
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# folder -> folders whose headers it may include, besides its own
ARROWS = {
    "core": set(),
    "include": set(),
    "shard_server": {"core"},
    "store": {"core", "shard_server"},
    "ctl": {"core"},
    "antdtd": {"core"},
    "launcher": {"core"},
    "jobd": {"core", "shard_server", "store", "ctl", "launcher"},
    "report": {"core", "shard_server", "launcher"},
    "trainer": {"core"},
    "sim": {"core", "shard_server", "ctl", "antdtd", "launcher", "trainer"},
    "cmd": {"core", "shard_server", "ctl", "antdtd", "launcher", "jobd", "trainer", "sim"},
    "bench": {"core", "shard_server", "store", "ctl", "antdtd", "launcher", "jobd", "report", "trainer", "sim"},
    "examples": {"core", "trainer"},
    "tests": {"core", "shard_server", "store", "ctl", "antdtd", "launcher", "jobd", "report", "trainer", "sim", "cmd", "bench"},
}

# part of a folder -> what it may include besides: the job's coordinator is where ctl and
# shard_server meet, a command of antdt may ask any part, and an export reads what trainers wrote
PART_ARROWS = {"ctl/job": {"shard_server"},
               "launcher/commands": {"shard_server", "ctl", "antdtd", "jobd", "report", "trainer",
                                     "sim", "bench"},
               "launcher/model": {"trainer"},
               "trainer/c_api": {"include"},
               "cmd/antdt-trainer": {"include"},
               "tests/trainer": {"include"}}

# inside trainer/: the parts that other programs embed or that build without LibTorch
TRAINER_ARROWS = {
    "client": {"client"},
    "data": {"client", "data"},
    "ps": {"ps"},
    "sync": {"sync"},
    "ps_link": {"ps", "ps_link"},
    "injected": {"injected"},
    "worker": {"client", "ps", "sync", "worker"},
    "ps_server": {"client", "injected", "ps", "ps_link", "ps_server"},
}

# library -> (pattern of its headers, the only folders that may include them)
LIBRARIES = {
    "ZeroMQ": (re.compile(r"^zmq"), ("core/transport/",)),
    "libcurl": (re.compile(r"^curl/"), ("store/curl_library.h",)),
    "LibTorch": (re.compile(r"^(torch|ATen|c10)/"), ("trainer/torch/", "trainer/kit/", "include/antdt/", "tests/trainer/")),
    "NCCL or CUDA": (re.compile(r"^(nccl|cuda|nvml|cublas|cudnn)"), ("trainer/cuda/", "trainer/nccl/")),
}

# Code that decides has no second thread.
PURE = ("ctl/", "shard_server/", "sim/", "trainer/ps/", "trainer/sync/", "trainer/worker/",
        "tests/ctl/", "tests/shard_server/", "tests/sim/")
THREADS = re.compile(r"^(thread|mutex|shared_mutex|atomic|condition_variable|future|semaphore|barrier|"
                     r"latch|stop_token|execution|pthread\.h|threads\.h)$")

# sources that are longer than allowed although they have one subject
LONG = {}

# Programs are executed in one place, and shims by Boost.Process. The other sources that fork, which
# are named here, make a copy of their process or execute a program from their main thread.
EXECUTES = re.compile(r"\b(execve?|execvpe?|execl|posix_spawnp?|boost::process\S*)\s*\(|boost/process")
MAY_EXECUTE = {"core/os/spawn.cc", "antdtd/processes/shim_launcher.cc", "launcher/commands/bench/bench.cc"}
FORKS = re.compile(r"(?<![\w.])(::)?v?fork\(\)")
MAY_FORK = {"core/os/spawn.cc": "starts programs",
            "antdtd/shim/shim.cc": "leaves a copy that starts its agent again",
            "antdtd/shim/cgroup.cc": "tries whether a process can enter a cgroup",
            "core/os/forks/forked_copy.cc": "a training state as it was, to be written",
            "trainer/collective/bench.cc": "ranks of a benchmark",
            "bench/programs/copies_bench.cc": "the other end of a link",
            "bench/programs/ps_store_bench.cc": "measures a fork"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def sources(root):
    for folder in ARROWS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc") and path.is_file():
                yield folder, path


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def check_own(root, folder, path, target):
    """Returns the error of a quoted include, or None."""
    if folder == "tests" and (path.parent / target).is_file():
        return None
    head = target.split("/")[0]
    if head not in ARROWS or "/" not in target:
        return f'"{target}" is not written from the root of the project'
    if not (root / target).is_file():
        return f'"{target}" does not exist'
    part = "/".join(path.relative_to(root).parts[:2])
    if head != folder and head not in ARROWS[folder] | PART_ARROWS.get(part, set()):
        return f'{folder} may not include {head}: "{target}"'
    if folder == head == "trainer":
        part = path.relative_to(root).parts[1]
        if part in TRAINER_ARROWS and target.split("/")[1] not in TRAINER_ARROWS[part]:
            return f'trainer/{part} may not include "{target}"'
    return None


def check_library(name, target):
    for library, (pattern, places) in LIBRARIES.items():
        if pattern.match(target) and not name.startswith(places):
            return f"{library} may be included in {' and '.join(places)} only: <{target}>"
    if THREADS.match(target) and name.startswith(PURE):
        return f"no threads where decisions are made: <{target}>"
    return None


def check_processes(name, text):
    """Yields the errors in how a source starts processes."""
    code = re.sub(r"//[^\n]*", "", text)
    if EXECUTES.search(code) and name not in MAY_EXECUTE:
        yield f"{name}: programs are started by core/os/spawn.h"
    if FORKS.search(code) and name not in MAY_FORK:
        yield f"{name}: forks; a program is started by core/os/spawn.h"


def violations(root):
    found = []
    for folder, path in sources(root):
        name = path.relative_to(root).as_posix()
        if folder != "tests":
            found.extend(check_processes(name, path.read_text(encoding="utf-8")))
        lines = path.read_text(encoding="utf-8").count("\n")
        if path.name == "main.cc" and folder == "cmd" and lines >= 150:
            found.append(f"{name}: {lines} lines; a main.cc reads flags and wires objects, under 150")
        elif folder != "tests" and lines >= 500 and name not in LONG:
            found.append(f"{name}: {lines} lines; a file of 500 holds two subjects")
        if path.suffix == ".h" and re.search(r"^\s*(inline )?namespace \{", path.read_text(encoding="utf-8"), re.M):
            found.append(f"{name}: a header has no namespace without a name: each file would have its own")
        for number, quoted, target in includes(path):
            wrong = check_library(name, target)
            if wrong is None and quoted:
                wrong = check_own(root, folder, path, target)
            if wrong:
                found.append(f"{name}:{number}: {wrong}")
    return found


MOST_FILES = 25  # and a README


def folders(root):
    """Folders with sources that have no README or too many files."""
    for top in (*ARROWS, "scripts", "man", "docs"):
        for folder in [root / top, *sorted(p for p in (root / top).rglob("*") if p.is_dir())]:
            name = folder.relative_to(root).as_posix()
            files = [p for p in folder.iterdir() if p.is_file() and p.suffix != ".pyc"]
            if not files or {"transcripts", "corpus", "data"} & set(folder.parts):
                continue
            if not (folder / "README.md").is_file():
                yield name, "a folder of code has a README that says what is in it and what may not be"
            if len(files) > MOST_FILES + 1:
                yield name, f"{len(files)} files; divide it by subject"


class Project(unittest.TestCase):
    def test_every_include_is_an_allowed_arrow(self):
        found = violations(ROOT)
        self.assertFalse(found, "\n" + "\n".join(found))

    def test_the_walk_sees_the_project(self):
        self.assertGreater(sum(1 for _ in sources(ROOT)), 50)


    def test_every_folder_of_code_says_what_it_is_and_holds_few_files(self):
        found = [f"{path}: {what}" for path, what in folders(ROOT)]
        self.assertFalse(found, "\n" + "\n".join(found))


class Checker(unittest.TestCase):
    """The checker itself, on made-up trees."""

    def found_in(self, files):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return violations(root)

    def test_allowed_arrows_pass(self):
        files = {"core/a.h": "#include <zlib.h>\n", "ctl/b.cc": '#include "core/a.h"\n',
                 "core/transport/z.cc": "#include <zmq.h>\n"}
        self.assertEqual(self.found_in(files), [])

    def test_an_arrow_between_two_parts_is_found(self):
        found = self.found_in({"ctl/a.h": "", "launcher/b.cc": '\n#include "ctl/a.h"\n'})
        self.assertEqual(len(found), 1)
        self.assertIn("launcher/b.cc:2: launcher may not include ctl", found[0])

    def test_only_the_wiring_of_the_job_daemon_joins_ctl_and_shard_server(self):
        files = {"shard_server/l.h": "", "ctl/job/a.cc": '#include "shard_server/l.h"\n'}
        self.assertEqual(self.found_in(files), [])
        for folder in ("ctl", "ctl/control/solutions", "launcher/job"):
            found = self.found_in({"shard_server/l.h": "", folder + "/a.cc": '#include "shard_server/l.h"\n'})
            self.assertEqual(len(found), 1, folder)

    def test_the_simulation_includes_machines_and_no_programs(self):
        files = {f"{part}/a.h": "" for part in ("core", "shard_server", "ctl", "antdtd", "trainer")}
        text = "".join(f'#include "{name}"\n' for name in files)
        self.assertEqual(self.found_in({**files, "sim/s.cc": text}), [])
        self.assertEqual(len(self.found_in({"cmd/a.h": "", "sim/s.cc": '#include "cmd/a.h"\n'})), 1)
        self.assertEqual(len(self.found_in({"sim/a.h": "", "ctl/c.cc": '#include "sim/a.h"\n'})), 1)

    def test_a_library_outside_its_folder_is_found(self):
        found = self.found_in({"trainer/loop/a.cc": "#include <torch/torch.h>\n",
                               "antdtd/b.cc": "#include <zmq.hpp>\n",
                               "trainer/c.cc": "# include <nccl.h>\n"})
        self.assertEqual(len(found), 3)

    def test_a_thread_where_decisions_are_made_is_found(self):
        files = {"ctl/a.cc": "#include <thread>\n", "antdtd/a.cc": "#include <thread>\n"}
        self.assertEqual(self.found_in(files),
                         ["ctl/a.cc:1: no threads where decisions are made: <thread>"])

    def test_an_include_that_does_not_exist_or_is_relative_is_found(self):
        found = self.found_in({"core/a.cc": '#include "core/nowhere.h"\n#include "b.h"\n', "core/b.h": ""})
        self.assertEqual(len(found), 2)

    def test_the_client_does_not_reach_into_the_trainer(self):
        found = self.found_in({"trainer/torch/t.h": "", "trainer/client/c.cc": '#include "trainer/torch/t.h"\n'})
        self.assertEqual(len(found), 1)

    def test_long_files_are_found(self):
        found = self.found_in({"cmd/x/main.cc": "\n" * 150, "core/a.cc": "\n" * 500, "core/b.cc": "\n" * 499})
        self.assertEqual(len(found), 2)

    def test_programs_are_started_in_one_place(self):
        files = {"core/os/spawn.cc": "execve(p, a, e); fork();", "ctl/a.cc": "// fork() and execve(\n",
                 "antdtd/b.cc": "pid = fork();", "launcher/c.cc": "posix_spawn(&pid, p);",
                 "cmd/d.cc": "#include <boost/process.hpp>\n"}
        self.assertEqual(self.found_in(files),
                         ["antdtd/b.cc: forks; a program is started by core/os/spawn.h",
                          "launcher/c.cc: programs are started by core/os/spawn.h",
                          "cmd/d.cc: programs are started by core/os/spawn.h"])

    def test_a_namespace_without_a_name_in_a_header_is_found(self):
        found = self.found_in({"core/a.h": "namespace antdt {\nnamespace {\n", "core/b.cc": "namespace {\n"})
        self.assertEqual(len(found), 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
