#!/usr/bin/env python3
"""Completion in the real shells: every command and every flag that --help of the programs says.

Usage: ANTDT_BIN=build/bin completion_test.py. zsh is asked where it is installed.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import man_test

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = man_test.BIN
EVERYWHERE = {"--help", "--version", "-h"}

BASH = """
source "$OUT/antdt.bash"
compopt() { :; }  # only the line editor has it
answer() {  # the words of the line, of which the last one is completed
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _antdt; printf '%s\\n' "${COMPREPLY[@]}"
}
"""
# In zsh, the file is the body of a function of the completion system.
ZSH = """
emulate -R zsh
compadd() { [[ $1 == -- ]] && shift; local w; for w; do [[ $w == ${words[CURRENT]}* ]] && print -r -- $w; done; return 0 }
_files() { [[ $1 == -/ ]] && print -r -- DIRECTORIES || print -r -- FILES }
body=$(<$OUT/_antdt)
answer() { local -a words=("$@"); local CURRENT=$#; eval "_complete_() { $body
}"; _complete_ }
"""


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        subprocess.run([sys.executable, ROOT / "packaging/completion/generate.py", BIN, cls.dir.name],
                       check=True, timeout=120)
        cls.help = {(program, *path): options for program in man_test.PAGES
                    for path, options in man_test.help_of(program).items()}

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def answers(self, shell, prelude, lines):
        """What is offered for the last word of each of `lines`, with one start of the shell."""
        script = prelude + "".join(
            "answer " + " ".join("'" + w + "'" for w in line) + "; echo @@@\n" for line in lines)
        done = subprocess.run([shell, "-c", script], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, OUT=self.dir.name), cwd=self.dir.name)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [set(part.split()) for part in done.stdout.split("@@@\n")[:-1]]

    def check(self, shell, prelude):
        paths = list(self.help)
        flags = self.answers(shell, prelude, [(*path, "--") for path in paths])
        for path, offered in zip(paths, flags):
            with self.subTest(shell=shell, command=" ".join(path)):
                self.assertEqual(offered - EVERYWHERE, self.help[path])
        below = {path: {p[-1] for p in paths if p[:-1] == path} for path in paths}
        groups = [path for path in paths if below[path]]
        self.assertIn(("antdt",), groups)
        for path, offered in zip(groups, self.answers(shell, prelude, [(*p, "") for p in groups])):
            with self.subTest(shell=shell, command=" ".join(path)):
                self.assertEqual(offered, below[path])
        # Other words in between, and a command that is only begun.
        some = self.answers(shell, prelude, [("antdt", "evict", "run1", "--rea"), ("antdt", "ev"),
                                             ("/usr/bin/antdt", "data", "au")])
        self.assertEqual(some, [{"--reason"}, {"evict"}, {"audit"}])

    def test_bash_offers_every_command_and_flag(self):
        self.check("bash", BASH)

    def test_bash_offers_files_and_directories_where_they_belong(self):
        directory = pathlib.Path(self.dir.name)
        (directory / "runs-x").mkdir()
        (directory / "runs.toml").touch()
        offered = self.answers("bash", BASH, [("antdt", "run", "--run-dir", "runs"),
                                              ("antdt", "run", "runs")])
        self.assertEqual(offered, [{"runs-x"}, {"runs-x", "runs.toml"}])

    def test_zsh_offers_every_command_and_flag(self):
        zsh = shutil.which("zsh")
        if zsh is None:
            self.skipTest("NOT RUN: no zsh (scripts/install-deps has it)")
        self.check(zsh, ZSH)
        offered = self.answers(zsh, ZSH, [("antdt", "run", "--run-dir", ""), ("antdt", "run", "")])
        self.assertEqual(offered, [{"DIRECTORIES"}, {"FILES"}])


if __name__ == "__main__":
    sys.exit(unittest.main())
