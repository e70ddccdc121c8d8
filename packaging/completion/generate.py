#!/usr/bin/env python3
"""Writes the completion of antdt and antdtd for bash (antdt.bash) and zsh (_antdt).

Usage: generate.py BIN OUT. Everything is read from --help of the programs in BIN.
"""
import pathlib
import re
import subprocess
import sys

PROGRAMS = ("antdt", "antdtd")
# "  -o,--option VALUE ...   text": the names, and the first word after them
OPTION = re.compile(r"^ {2}((?:-\w,)?--[a-z][a-z0-9-]*)(?: (\S+))?")
COMMAND = re.compile(r"^ {2}([a-z][a-z0-9-]*) {2,}(\S.*)$")


class Command:
    """What one command takes: `options` {name: whether a directory, a file or nothing follows}."""

    def __init__(self, text):
        options, _, commands = text.partition("\nSubcommands:\n")
        self.options = {}
        for line in options.splitlines():
            match = OPTION.match(line)
            if match:
                for name in match.group(1).split(","):
                    self.options[name] = self.value_of(line, match)
        self.commands = dict(m.groups() for m in map(COMMAND.match, commands.splitlines()) if m)

    @staticmethod
    def value_of(line, match):
        """"dir", "file", or "" for a flag. In the help two blanks or the line's end follow a flag."""
        word = match.group(2)
        if not word or line[match.end(1):].startswith("  ") or word in ("Needs:", "Excludes:"):
            return ""
        return "dir" if word.split("=")[0] == "DIR" else "file"


def walk(bin_dir, program, path=()):
    """{path: Command}, through all subcommands."""
    text = subprocess.run([bin_dir / program, *path, "--help"], capture_output=True, text=True,
                          timeout=60, check=True).stdout
    command = Command(text)
    found = {(program, *path): command}
    for name in command.commands:
        found.update(walk(bin_dir, program, (*path, name)))
    return found


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def cases(commands, indent):
    """For each path a branch that sets `options`, `directories`, `values` and `commands`."""
    for path, command in commands.items():
        lists = {"options": command.options,
                 "directories": [o for o, v in command.options.items() if v == "dir"],
                 "values": [o for o, v in command.options.items() if v == "file"],
                 "commands": command.commands}
        yield f"{indent}{quoted(' '.join(path))})"
        for name, words in lists.items():
            yield f"{indent}  {name}=({' '.join(words)})"
        yield f"{indent}  ;;"


HEAD = "# Made by packaging/completion/generate.py from --help of the programs.\n"

# The words before the cursor that are commands make the path; each is looked up in `known`.
BASH = HEAD + """_antdt() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
  local path=${{COMP_WORDS[0]##*/}} word
  local -a options directories values commands
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in
      {known}) path="$path $word" ;;
    esac
  done
  case "$path" in
{cases}
  esac
  if [[ " ${{directories[*]}} " == *" $prev "* ]]; then
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -d -- "$cur")
  elif [[ " ${{values[*]}} " == *" $prev "* ]]; then
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  elif [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${{options[*]}}" -- "$cur")
  elif (( ${{#commands[@]}} )); then
    mapfile -t COMPREPLY < <(compgen -W "${{commands[*]}}" -- "$cur")
  else
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}}
complete -F _antdt {programs}
"""

ZSH = "#compdef {programs}\n" + HEAD + """
local path_=${{words[1]:t}} word
local -a options directories values commands
for word in "${{(@)words[2,CURRENT-1]}}"; do
  case "$path_ $word" in
    {known}) path_="$path_ $word" ;;
  esac
done
case "$path_" in
{cases}
esac
if (( ${{directories[(Ie)${{words[CURRENT-1]}}]}} )); then
  _files -/
elif (( ${{values[(Ie)${{words[CURRENT-1]}}]}} )); then
  _files
elif [[ ${{words[CURRENT]}} == -* ]]; then
  compadd -- $options
elif (( $#commands )); then
  compadd -- $commands
else
  _files
fi
"""


def write(bin_dir, out):
    commands = {}
    for program in PROGRAMS:
        commands.update(walk(bin_dir, program))
    known = " | ".join(quoted(" ".join(path)) for path in commands if len(path) > 1)
    out.mkdir(parents=True, exist_ok=True)
    for name, text, indent in (("antdt.bash", BASH, "    "), ("_antdt", ZSH, "  ")):
        (out / name).write_text(text.format(known=known, programs=" ".join(PROGRAMS),
                                            cases="\n".join(cases(commands, indent))))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
