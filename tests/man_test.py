#!/usr/bin/env python3
"""Compares the man pages with what --help of the programs says.

Usage: ANTDT_BIN=build/bin man_test.py. It fails if only one of the two has an option or a command,
or if man cannot format a page without warnings.
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin"))
PAGES = {"antdt": "antdt.1", "antdtd": "antdtd.8"}

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
EVERYWHERE = {"--help", "--help-all", "--version"}


def options_in_help(text):
    """Options that begin a line of the help (others are mentions of them)."""
    found = set()
    for line in text.splitlines():
        match = re.match(r"\s+((?:-\w,\s?)?--[a-z][a-z0-9,-]*)", line)
        if match:
            found.update(OPTION.findall(match.group(1)))
    return found - EVERYWHERE


def commands_in_help(text):
    _, _, commands = text.partition("Subcommands:")
    return re.findall(r"^ {2}([a-z][a-z0-9-]*)", commands, re.MULTILINE)


def help_of(program, path=()):
    """{command path: options}, through all subcommands."""
    result = subprocess.run([BIN / program, *path, "--help"], capture_output=True, text=True,
                            timeout=30, check=True)
    found = {path: options_in_help(result.stdout)}
    for command in commands_in_help(result.stdout):
        found.update(help_of(program, (*path, command)))
    return found


def page_text(page):
    return (ROOT / "man" / page).read_text(encoding="utf-8").replace("\\-", "-").replace("\\fB", "").replace(
        "\\fI", "").replace("\\fR", "").replace("\\fP", "")


def options_described(text):
    """Options in lines that begin with a font macro, which are descriptions and not prose."""
    found = set()
    for line in text.splitlines():
        if re.match(r"\.(B|BI|BR|IP|OP)\b", line):
            found.update(OPTION.findall(line))
    return found - EVERYWHERE


class ManPages(unittest.TestCase):
    def test_each_option_is_described_and_each_described_option_exists(self):
        for program, page in PAGES.items():
            with self.subTest(page=page):
                in_help = set().union(*help_of(program).values())
                in_page = options_described(page_text(page))
                self.assertFalse(in_help - in_page, f"{page} does not describe these")
                self.assertFalse(in_page - in_help, f"{program} --help does not know these")

    def test_each_command_is_described(self):
        for program, page in PAGES.items():
            text = page_text(page)
            for path in help_of(program):
                with self.subTest(page=page, command=" ".join(path)):
                    self.assertIn(" ".join(path), text)

    def test_pages_are_set_without_a_warning(self):
        for page in sorted((ROOT / "man").glob("*.[158]")):
            with self.subTest(page=page.name):
                result = subprocess.run(["man", "--warnings", "-l", str(page)], capture_output=True,
                                        text=True, timeout=60, check=False,
                                        env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100"})
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stderr, "")


if __name__ == "__main__":
    sys.exit(unittest.main())
