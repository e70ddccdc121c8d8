"""antdt doctor over three hosts that share nothing (separate_hosts.py), of which one is spoilt."""

import json
import os
import re
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import await_true, needs_trainer
from separate_hosts import INSIDE, SeparateHosts, run_inside

PORTS = "29400-29409"
# Everything for the port range that comes from one address is lost, as behind a firewall. The rule
# for this machine's own addresses comes first of all, so it has to make room.
FIREWALL = """
{enter} ip rule add pref 20 lookup local && {enter} ip rule del pref 0 &&
{enter} ip rule add pref 10 from {source} ipproto tcp dport {ports} blackhole
"""
MBIT = 50


@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class Doctor(SeparateHosts):
    def setUp(self):
        super().setUp()
        for name in ("hosta", "hostb", "hostc"):
            self.add_host(name, size="2g")
        self.job = self.write("job.toml", tally.job(
            workers=2, records=100, epochs=1,
            extra=self.cluster(*self.hosts.values()) + f'ports = "{PORTS}"\n'))

    def doctor(self, *args, code, job=True):
        begin = time.monotonic()
        done = self.antdt("doctor", *([self.job] if job else []), "--run-dir", self.runs / "run",
                          *args, timeout=60)
        print(f"antdt doctor took {time.monotonic() - begin:.1f} s")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def examined(self, code):
        """The JSON, and what was found to be wrong."""
        report = json.loads(self.doctor("--json", code=code))
        bad = [f for f in report["findings"] if f["level"] in ("error", "warning")]
        self.assertEqual(report["errors"], len([f for f in bad if f["level"] == "error"]))
        return report, bad

    def pair(self, one, other):
        a, b = self.hosts[one], self.hosts[other]
        return f"{one} at {a.endpoint} -> {other} at {b.endpoint}"

    def files_of_hosts(self):
        return {name: sorted(p.name for p in host.path(self.runs).iterdir())
                for name, host in self.hosts.items()}

    def test_healthy_hosts_are_well_and_have_a_matrix(self):
        out = self.doctor(code=0)
        print(out)
        self.assertRegex(out, r"from \\ to +hosta +hostb +hostc")
        self.assertRegex(out, r"hosta +- +\d+ +\d+\n")
        self.assertNotIn("fails", out)
        self.assertIn("all 6 are possible", out)
        self.assertIn("each host has its own", out)
        self.assertRegex(out, r"0 errors, .* checks well\n$")
        self.assertEqual(list(self.runs.iterdir()), [], "nothing is left of the probe here")
        await_true(lambda: not any(self.files_of_hosts().values()), 10,
                   "nothing is left of the probes on the hosts")

    def test_the_host_with_a_slow_link_is_named(self):
        slow = self.hosts["hostb"]
        self.sh(f"{' '.join(slow.enter())} tc qdisc add dev far-3 root tbf rate {MBIT}mbit "
                "burst 64k latency 50ms")
        report, bad = self.examined(code=0)
        links = [f for f in bad if f["check"] == "link"]
        self.assertIn(f"hostb at {slow.endpoint} -> all hosts", [f["subject"] for f in links])
        for link in report["links"]:
            if link["from"] == slow.endpoint:
                self.assertLess(link["megabits_per_second"], 1.2 * MBIT)
                self.assertGreater(link["megabits_per_second"], 0.5 * MBIT)
            else:
                self.assertGreater(link["megabits_per_second"], 2 * MBIT)

    def test_a_pair_with_a_firewall_between_is_named_with_the_ports(self):
        host = self.hosts["hostc"]
        self.sh(FIREWALL.format(enter=" ".join(host.enter()), source=self.hosts["hosta"].address,
                                ports=PORTS))
        out = self.doctor(code=1)
        self.assertIn(f"error: {self.pair('hosta', 'hostc')}, link\n", out)
        print(out)
        self.assertIn("Connection timed out", out)
        self.assertNotIn("are possible", out)
        self.assertIn(f"let tcp ports {PORTS} through between the two hosts", out)
        # A warning there would be of the bandwidth, which a loaded machine may well cut in half.
        self.assertNotIn(f"error: {self.pair('hostc', 'hosta')}", out)
        self.assertRegex(out, r"hosta +- +\d+ +fails\n")

    def test_a_key_that_others_may_read_is_named(self):
        key = self.dir / "keys" / "job.key"
        key.chmod(0o644)
        report, bad = self.examined(code=1)
        self.assertEqual([(f["check"], f["looked_at"]) for f in bad if f["level"] == "error"],
                         [("keys", str(key))])
        found = next(f for f in bad if f["check"] == "keys")
        self.assertIn("0644", found["found"])
        self.assertIn(f"chmod 600 {key}", found["advice"])
        self.assertEqual(report["links"], [], "no agent can be asked without the key")

    def test_a_host_without_an_agent_is_named_and_the_others_are_examined(self):
        lost = self.hosts["hostb"]
        lost.agent.terminate()
        lost.agent.wait(10)
        report, bad = self.examined(code=1)
        errors = [f for f in bad if f["level"] == "error"]
        self.assertEqual([(f["check"], f["subject"]) for f in errors], [("agent", lost.endpoint)])
        self.assertIn("Connection refused", errors[0]["found"])
        self.assertIn("systemctl status antdtd", errors[0]["advice"])
        self.assertEqual(len(report["links"]), 2)

    def test_a_stranger_is_told_nothing_of_a_host(self):
        strangers = self.dir / "strangers"
        self.assertEqual(self.antdt("keygen", "--dir", strangers).returncode, 0)
        # The stranger knows the agents' public key, but is not authorised there.
        known = (self.dir / "keys" / "agents" / "cluster.pub").read_text()
        (strangers / "agents" / "cluster.pub").write_text(known)
        report = json.loads(self.doctor("--json", "--keys", strangers, code=1))
        of_hosts = [f for f in report["findings"] if "10.78.0." in f["subject"]]
        self.assertEqual({(f["check"], f["level"]) for f in of_hosts},
                         {("name", "ok"), ("agent", "error")})
        self.assertIn("authorized/", of_hosts[-1]["advice"])
        self.assertEqual(report["links"], [])

    def test_hosts_can_be_named_without_a_job(self):
        out = self.doctor("--hosts", f"{self.hosts['hosta'].endpoint},10.78.0.99:7700", "--keys",
                          self.dir / "keys", code=1, job=False)
        self.assertRegex(out, r"error: 10\.78\.0\.99:7700, agent\n")
        self.assertIn("hosta", out)
        out = self.doctor("--hosts", "nosuch.invalid", "--keys", self.dir / "keys", code=1, job=False)
        self.assertRegex(out, r"error: nosuch\.invalid:7700, name\n", "the port may be left out")
        bad = self.antdt("doctor", "--hosts", "hosta:port", timeout=20)
        self.assertEqual(bad.returncode, 2, bad.stderr)
        self.assertIn("'hosta:port' is no agent: write host or host:port", bad.stderr)

    @needs_trainer
    def test_a_run_warns_first_and_goes_on(self):
        host = self.hosts["hosta"]
        host.own_disk("/dev/shm", "16m")
        begin = time.monotonic()
        self.assertEqual(self.antdt("run", self.job, "--dry-run", timeout=20).returncode, 0)
        checks = time.monotonic() - begin
        begin = time.monotonic()
        process, run_dir = self.launch(self.job)
        err = process.stderr.readline()
        warned = time.monotonic() - begin
        print(f"the run's own checks took {checks:.2f} s, with the warnings {warned:.2f} s")
        err += process.stderr.read()
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(err, rf"(error|warning): {re.escape(host.endpoint)}, shared memory\n")
        self.assertIn("--shm-size", err)
        self.assertNotIn("Mbit/s", err, "it measures nothing")
        self.assertTrue((run_dir / "summary.json").exists())


class InNamespacesOfItsOwn(unittest.TestCase):
    def test_doctor(self):
        run_inside(self, __file__, "Doctor")


if __name__ == "__main__":
    unittest.main()
