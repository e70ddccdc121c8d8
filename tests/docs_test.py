#!/usr/bin/env python3
"""Checks that documents lead somewhere: every path that they name exists, every link has its
target, every page is in the index, and every folder of sources has a README."""
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Folders whose paths documents name as they are in the repository.
TOP = ("antdtd", "bench", "cmake", "cmd", "core", "ctl", "docs", "examples", "jobd", "launcher", "man",
       "packaging", "scripts", "shard_server", "sim", "tests", "trainer")
PATH = re.compile(r"(?<![\w./*…-])((?:%s)/[\w./-]+)" % "|".join(TOP))
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")

# Folders that need no README: their name and that of the folder above say it.
NO_README = {"tests/antdtd", "tests/cli", "tests/core", "tests/ctl", "tests/jobd", "tests/launcher",
             "tests/shard_server", "tests/sim", "tests/trainer"}


def tracked():
    """The files of the repository; if this is no repository, all files in it."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [ROOT / line for line in listed.stdout.splitlines()]
    return [p for top in TOP for p in (ROOT / top).rglob("*") if p.is_file()] + list(ROOT.glob("*.md"))


FILES = [p for p in tracked() if p.exists()]
PAGES = [p for p in FILES if p.suffix == ".md"]
SOURCES = [p for p in FILES if p.suffix in (".h", ".cc", ".py")]


def exists(path, folder):
    """Whether a path that a document names exists. The path may be a file, a folder, or the common
    part of the names of a header and its source."""
    path = path.rstrip("./")
    for base in (ROOT, folder):
        whole = base / path
        if whole.exists() or any(whole.parent.glob(whole.name + ".*")):
            return True
    return False


def missing_paths(page):
    text = page.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        for match in PATH.finditer(line):
            if not exists(match.group(1), page.parent):
                yield f"{page.relative_to(ROOT)}:{number}: there is no {match.group(1)}"


def anchors_of(page):
    """The names by which links reach the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*?)\s*$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


class Documents(unittest.TestCase):
    def test_every_path_that_a_page_names_exists(self):
        self.assertEqual([m for page in PAGES for m in missing_paths(page)], [])

    def test_every_page_that_a_source_names_exists(self):
        page = re.compile(r"docs/[\w/-]+\.md")
        missing = [f"{p.relative_to(ROOT)}: {name}" for p in SOURCES
                   for name in page.findall(p.read_text(encoding="utf-8", errors="replace"))
                   if not (ROOT / name).exists()]
        self.assertEqual(missing, [])

    def test_every_link_has_its_target(self):
        missing = [f"{p.relative_to(ROOT)}: {target}" for p in PAGES
                   for target, _ in LINK.findall(p.read_text(encoding="utf-8"))
                   if "://" not in target and not (p.parent / target).exists()]
        self.assertEqual(missing, [])

    def test_every_link_into_a_page_has_its_heading(self):
        missing = []
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
                there = page.parent / target if target else page
                if "://" in target or there.suffix != ".md" or not there.exists():
                    continue
                if anchor not in anchors_of(there):
                    missing.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
        self.assertEqual(missing, [])

    def test_every_page_is_in_the_index(self):
        docs = ROOT / "docs"
        linked = {target for target, _ in LINK.findall((docs / "README.md").read_text("utf-8"))}
        pages = {str(p.relative_to(docs)) for p in PAGES if docs in p.parents and p.name != "README.md"}
        self.assertEqual(pages - linked, set())

    def test_every_folder_of_sources_has_a_readme(self):
        folders = {p.parent for p in SOURCES if p.parent != ROOT}
        without = {str(f.relative_to(ROOT)) for f in folders if not (f / "README.md").exists()}
        self.assertEqual(without - NO_README, set())

    def test_the_metrics_that_the_page_lists_are_those_of_the_sources(self):
        page = (ROOT / "docs/operations/metrics.md").read_text(encoding="utf-8")
        rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `antdt_")]
        listed = {name for row in rows for name in re.findall(r"`(antdt_\w+)`", row)}
        sources = [*(ROOT / "ctl/job/metrics").glob("*.cc"), ROOT / "antdtd/host/agent_metrics.cc"]
        made = {name for source in sources
                for name in re.findall(r'"(antdt_\w+)"', source.read_text(encoding="utf-8"))}
        self.assertEqual(listed, made - {"antdt_job"})

    def test_the_events_for_hooks_that_the_page_lists_are_those_of_the_source(self):
        page = (ROOT / "docs/operations/metrics.md").read_text(encoding="utf-8").partition("| events | about |")[2]
        rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
        listed = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
        source = (ROOT / "ctl/job/metrics/hook_queue.cc").read_text(encoding="utf-8")
        kinds = source.partition("kKinds{")[2].partition("};")[0]
        made = set(re.findall(r'"([a-z-]+)"', kinds)) | {"worker-exited"}
        self.assertEqual(listed, made)

    def test_the_counters_of_events_that_rules_use_begin_at_0(self):
        rules = (ROOT / "packaging/prometheus/antdt-alerts.yml").read_text(encoding="utf-8")
        used = {kind for kinds in re.findall(r'antdt_job_events_total\{kind=~?"([^"]+)"', rules)
                for kind in kinds.split("|")}
        source = (ROOT / "ctl/job/metrics/job_metrics.cc").read_text(encoding="utf-8")
        begun = source.partition("of_a_rule :")[2].partition("}")[0]
        self.assertEqual(used, set(re.findall(r'"([a-z-]+)"', begun)))

    def test_a_path_that_is_not_there_is_found(self):
        self.assertTrue(exists("ctl/membership/membership", ROOT))
        self.assertTrue(exists("ctl/membership/membership.h", ROOT))
        self.assertFalse(exists("ctl/no_such_file.h", ROOT))


if __name__ == "__main__":
    unittest.main()
