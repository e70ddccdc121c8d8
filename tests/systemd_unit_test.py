#!/usr/bin/env python3
"""What systemd says of the unit antdtd.service: how exposed it is, and whether it knows its settings."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "packaging/antdtd.service.in"
MOST = 4.0
# Only a later systemd than Debian 12's knows it; an earlier one goes on without, as the unit says.
LATER = "Unknown key 'DelegateSubgroup' in section [Service], ignoring."


def version():
    if shutil.which("systemd-analyze") is None:
        return 0
    said = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True).stdout
    return int(re.search(r"systemd (\d+)", said).group(1))


class Unit(unittest.TestCase):
    def setUp(self):
        if version() < 250:
            self.skipTest("systemd-analyze of version 250 or later is not installed")
        folder = tempfile.TemporaryDirectory(prefix="antdt-unit-")
        self.addCleanup(folder.cleanup)
        self.unit = pathlib.Path(folder.name) / "antdtd.service"
        self.unit.write_text(SOURCE.read_text().replace("@bin@", "/usr/bin").replace("@etc@", "/etc"))

    def analyze(self, *words):
        return subprocess.run(["systemd-analyze", *words, self.unit], capture_output=True, text=True)

    def test_its_exposure_is_low(self):
        said = self.analyze("security", "--offline=true").stdout
        exposure = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", said).group(1))
        self.assertLess(exposure, MOST, said)

    def test_systemd_knows_each_setting(self):
        # On a machine that has the programs; otherwise it also says that they are not there.
        said = self.analyze("verify").stderr.splitlines()
        wrong = [line for line in said if self.unit.name in line and "is not executable" not in line
                 and LATER not in line and "Command 'man" not in line]
        self.assertEqual(wrong, [])

    def test_what_it_leaves_open_is_explained(self):
        """Each finding of systemd-analyze has its setting in the unit's list of reasons."""
        reasons = self.unit.read_text().split("; the reasons:")[1].split("NoNewPrivileges=")[0]
        said = self.analyze("security", "--offline=true").stdout
        findings = [line.split()[1] for line in said.splitlines() if line.startswith("✗")]
        self.assertGreater(len(findings), 10, said)
        for finding in findings:
            self.assertIn(key_of(finding), reasons, finding)


def key_of(finding):
    """The word by which the unit explains it: a setting, a capability, a group of calls, a family."""
    setting, _, value = finding.partition("=")
    if setting not in ("CapabilityBoundingSet", "SystemCallFilter", "RestrictAddressFamilies"):
        return setting + "="
    value = value.removeprefix("~")
    several = re.fullmatch(r"((?:CAP|AF)_[A-Z]*)\((\w+)(?:\|\w+)*\)", value)
    return several.group(1) + several.group(2) if several else value


if __name__ == "__main__":
    unittest.main()
