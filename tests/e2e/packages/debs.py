"""The Debian packages of the build, and a small Debian that has what they depend on."""

import functools
import os
import pathlib
import re
import subprocess

from harness import BIN, SOURCE

BUILD = BIN.parent
CHROOT = pathlib.Path(os.environ.get("ANTDT_TEST_CHROOT", BUILD / "chroot"))
# What installs at least one of the packages' files, or looks at them, in a test.
ALSO = ("python3", "needrestart")


def field(deb, name):
    return subprocess.run(["dpkg-deb", "-f", deb, name], check=True, capture_output=True,
                          text=True).stdout.strip()


def build(out, version=None):
    """Makes the packages; with another `version` if one is given. name -> file."""
    made = subprocess.run(["cpack", "-G", "DEB", "-B", out], cwd=BUILD, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return {field(deb, "Package"): deb for deb in sorted(out.glob("*.deb"))}


def raised(deb, version, out):
    """A copy of the package with a higher version, which it also wants of its siblings."""
    tree = out / deb.stem
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    control = tree / "DEBIAN/control"
    old = field(deb, "Version")
    control.write_text(re.sub(rf"^Version: .*$", f"Version: {version}", control.read_text(), flags=re.M)
                       .replace(f"(= {old})", f"(= {version})"))
    made = out / f"{field(deb, 'Package')}_{version}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", tree, made], check=True,
                   capture_output=True)
    return made


def dependencies(debs):
    """The packages of Debian that they depend on."""
    names = set()
    for deb in debs.values():
        for wish in field(deb, "Depends").split(","):
            name = wish.split("|")[0].split("(")[0].strip().split(":")[0]
            if name and name not in debs:
                names.add(name)
    return sorted(names | set(ALSO))


@functools.cache
def chroot(*packages):
    """(its directory, None), or (None, why there is none)."""
    CHROOT.mkdir(parents=True, exist_ok=True)
    made = subprocess.run([SOURCE / "scripts/chroot", CHROOT / "debian", *packages],
                          capture_output=True, text=True)
    if made.returncode == 0:
        return CHROOT / "debian", None
    return None, made.stderr.strip().splitlines()[-1] if made.stderr.strip() else "scripts/chroot failed"
