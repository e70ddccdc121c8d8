#!/usr/bin/env python3
"""Writes a Debian changelog, packed, made of CHANGELOG.md: the same bytes of the same text.

Usage: changelog.py CHANGELOG.md VERSION MAINTAINER OUT
"""
import email.utils
import gzip
import os
import pathlib
import re
import subprocess
import sys


def date_of(source):
    """Of the last change, in seconds: SOURCE_DATE_EPOCH, or the last commit, or the file's."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    try:
        said = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=source.parent, check=True,
                              capture_output=True, text=True).stdout.strip()
        return int(said)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return int(source.stat().st_mtime)


def entries_of(text):
    """(version, points) of each release, in the file's order."""
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        version = re.match(r"\d+\.\d+\.\d+", part)
        points = [" ".join(point.split()) for point in re.split(r"^- ", part, flags=re.M)[1:]]
        if version:
            yield version.group(), points


def wrapped(point):
    lines, line = [], "  *"
    for word in point.split():
        if len(line) + 1 + len(word) > 79:
            lines.append(line)
            line = "   "
        line += " " + word
    return "\n".join([*lines, line])


def main():
    source, version, maintainer = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    out = pathlib.Path(sys.argv[4])
    entries = list(entries_of(source.read_text()))
    if not entries or entries[0][0] != version:
        sys.exit(f"changelog: {source} begins with {entries[0][0] if entries else 'no release'}, and "
                 f"this is {version}")
    date = email.utils.formatdate(date_of(source))
    text = "\n".join(f"antdt ({v}) unstable; urgency=medium\n\n" + "\n".join(map(wrapped, points)) +
                     f"\n\n -- {maintainer}  {date}\n" for v, points in entries)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
