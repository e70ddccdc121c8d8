"""The metrics of a running job: over HTTP as they are, judged by promtool, and scraped by a real
Prometheus that evaluates the alert rules that come with AntDT."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import unittest
import urllib.parse
import urllib.request

from monitoring import Watched
from harness import BIN, SOURCE, await_true, needs_trainer
from hosts import Hosts

PROMTOOL = shutil.which("promtool")
PROMETHEUS = shutil.which("prometheus")
RULES = SOURCE / "packaging" / "prometheus" / "antdt-alerts.yml"
DASHBOARD = SOURCE / "packaging" / "grafana" / "antdt-dashboard.json"
ANY_PORT = '[metrics]\nlisten = "127.0.0.1:0"\n'
SLOW = '[[inject]]\nworkers = ["w1"]\nslowdown = 4\n'

needs_prometheus = unittest.skipUnless(
    PROMETHEUS and PROMTOOL, "NOT RUN: no prometheus and promtool (scripts/install-deps has them)")


def get(address, path="/metrics", method="GET"):
    connection = http.client.HTTPConnection(address, timeout=20)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read().decode()
    finally:
        connection.close()


def samples(text):
    """{(name, labels): value}; the labels as a frozen set of pairs."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if match:
            labels = frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match.group(2) or ""))
            found[match.group(1), labels] = float(match.group(3))
    return found


def value(text, name, **labels):
    """The one sample of that name that has these labels, among others; None without one."""
    wanted = set(labels.items())
    found = [v for (n, l), v in samples(text).items() if n == name and wanted <= l]
    return found[0] if len(found) == 1 else None


def check(test, text):
    """promtool finds nothing to complain of; the last thing that a test does."""
    if PROMTOOL is None:
        test.skipTest("NOT RUN in part: no promtool (scripts/install-deps has it)")
    judged = subprocess.run([PROMTOOL, "check", "metrics"], input=text, text=True,
                            capture_output=True, timeout=60)
    test.assertEqual((judged.returncode, judged.stdout + judged.stderr), (0, ""))


@needs_trainer
class Metrics(Watched):
    def test_a_running_job_tells_what_it_does(self):
        self.start(ANY_PORT + SLOW)
        address = self.address()
        status, kind, text = get(address)
        self.assertEqual((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
        self.assertEqual(get(address, "/")[0], 404)
        self.assertEqual(get(address, method="POST")[0], 405)

        def straggler():
            text = get(address)[2]
            return value(text, "antdt_worker_straggler", worker="w1") == 1 and text
        text = await_true(straggler, 60, "w1 called a straggler")
        self.assertGreater(value(text, "antdt_worker_slowdown_ratio", worker="w1"), 2)
        self.assertEqual(value(text, "antdt_worker_straggler", worker="w0"), 0)
        self.assertEqual(value(text, "antdt_job_state", state="training"), 1)
        self.assertEqual(value(text, "antdt_worker_joined", worker="w1"), 1)
        self.assertEqual(value(text, "antdt_worker_batch_samples", worker="w1"), 8)
        self.assertEqual(value(text, "antdt_job_failures_total", **{"class": "signal"}), 0)
        self.assertGreater(value(text, "antdt_job_samples_per_second"), 0)
        self.assertGreater(value(text, "antdt_journal_commit_seconds_count"), 0)
        self.assertGreater(value(text, "antdt_worker_time_seconds_total", worker="w0",
                                 part="collective_wait"), 0)
        before = value(text, "antdt_job_samples_done")

        def later():
            done = value(get(address)[2], "antdt_job_samples_done")
            return done > before and done
        done = await_true(later, 30, "samples trained")
        summary = self.stop()
        self.assertGreaterEqual(summary["samples_trained"], done)
        self.assertRaises(OSError, get, address)
        self.assert_nothing_left()
        check(self, text)

    def test_a_failure_is_counted_and_a_new_daemon_serves_again(self):
        self.start(ANY_PORT)
        address = self.address()
        await_true(lambda: value(get(address)[2], "antdt_worker_joined", worker="w1") == 1, 60,
                   "w1 trains")
        status = json.loads(self.antdt("status", self.run_dir, "--json").stdout)
        os.kill(next(w["pid"] for w in status["workers"] if w["id"] == "w1"), signal.SIGKILL)
        await_true(lambda: value(get(address)[2], "antdt_job_failures_total",
                                 **{"class": "signal"}) == 1, 60, "the failure counted")
        said = len(self.events("metrics"))
        os.kill(int((self.run_dir / "jobd.lock").read_text()), signal.SIGKILL)
        await_true(lambda: len(self.events("metrics")) > said, 60, "metrics served again")
        text = get(self.address())[2]
        self.assertEqual(value(text, "antdt_job_incarnation"), 2)
        self.assertEqual(value(text, "antdt_job_failures_total", **{"class": "signal"}), 1,
                         "what the journal keeps is counted")
        self.stop()

    def test_a_port_that_is_taken_ends_the_run_before_anything_starts(self):
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        port = taken.getsockname()[1]
        self.start(f'[metrics]\nlisten = "127.0.0.1:{port}"\n')
        _, err = self.process.communicate(timeout=60)
        self.assertEqual(self.process.returncode, 2, err)
        self.assertIn(f"127.0.0.1:{port}", err)
        self.assertIn("Address already in use", err)
        self.assertIn("metrics.listen", err)
        self.assertFalse(self.run_dir.exists(), "something was begun")
        self.assert_nothing_left()

    def test_what_is_no_address_is_an_error_of_job_toml(self):
        self.start('[metrics]\nlisten = "9400"\n')
        _, err = self.process.communicate(timeout=60)
        self.assertEqual(self.process.returncode, 2, err)
        self.assertIn("metrics.listen", err)
        self.assertIn("127.0.0.1:9400", err)


@needs_trainer
class AgentMetrics(Watched, Hosts):
    def test_an_agent_tells_what_runs_on_its_host(self):
        keys = self.keys("keys")
        listen = self.agent("node1", keys, flags=("--metrics", "127.0.0.1:0"))
        address = await_true(
            lambda: re.search(r"metrics are at http://(\S+)/metrics",
                              (self.dir / "node1.log").read_text()), 60,
            "the log says where the metrics are").group(1)
        text = get(address)[2]
        self.assertEqual(value(text, "antdt_agent_jobs", host="node1"), 0)
        self.start(self.cluster([listen], keys))

        def both():
            text = get(address)[2]
            return (value(text, "antdt_agent_job_processes") == 2 and
                    value(text, "antdt_agent_processes_started_total") == 2 and text)
        text = await_true(both, 60, "two processes on the host, and both started")
        self.assertEqual(value(text, "antdt_agent_job_attached"), 1)
        self.stop()
        await_true(lambda: sum(v for (n, _), v in samples(get(address)[2]).items()
                               if n == "antdt_agent_processes_ended_total") == 2, 30,
                   "both ends counted")
        check(self, text)

    def test_an_address_that_is_taken_is_an_error_before_anything_starts(self):
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run([BIN / "antdtd", "--private", "--socket-dir", self.runtime / "a",
                               "--metrics", address], env=self.env, capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 3, done.stderr)  # a later start may find it free
        self.assertIn(f"--metrics: metrics cannot be served at {address}", done.stderr)


@needs_trainer
@needs_prometheus
class RealPrometheus(Watched):
    def prometheus(self, address):
        """A Prometheus that scrapes `address` each second and knows the alert rules: its own
        address."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            own = f"127.0.0.1:{free.getsockname()[1]}"
        config = self.write("prometheus.yml", json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "antdt",
                                "static_configs": [{"targets": [address]}]}]}))
        log = (self.dir / "prometheus.log").open("w")
        self.addCleanup(log.close)
        server = subprocess.Popen(
            [PROMETHEUS, f"--config.file={config}", f"--storage.tsdb.path={self.dir}/tsdb",
             f"--web.listen-address={own}", "--log.level=warn"],
            cwd=self.dir, stdout=log, stderr=log)

        def end():
            server.terminate()
            server.wait(timeout=60)
        self.addCleanup(end)

        def ready():
            self.assertIsNone(server.poll(), (self.dir / "prometheus.log").read_text())
            try:
                return urllib.request.urlopen(f"http://{own}/-/ready", timeout=5).status == 200
            except OSError:
                return False
        await_true(ready, 60, "Prometheus is ready")
        return own

    def ask(self, server, path, **query):
        url = f"http://{server}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]

    def query(self, server, text):
        """[(labels, value)]"""
        return [(r["metric"], float(r["value"][1]))
                for r in self.ask(server, "query", query=text)["result"]]

    def test_it_scrapes_a_running_job(self):
        self.start(ANY_PORT + SLOW)
        server = self.prometheus(self.address())
        await_true(lambda: self.query(server, "rate(antdt_worker_samples_total[5s]) > 0"), 60,
                   "a rate of samples")
        found = await_true(
            lambda: self.query(server, 'antdt_worker_straggler{worker="w1"} == 1'), 60,
            "the straggler")
        self.assertTrue(found[0][0]["antdt_job"].startswith("watched-"), found)
        self.assertEqual(self.query(server, "up")[0][1], 1)
        targets = self.ask(server, "targets")["activeTargets"]
        self.assertEqual([(t["health"], t["lastError"]) for t in targets], [("up", "")])

        # Every metric that an alert or the dashboard names is one that the job has.
        known = {m for m in self.ask(server, "label/__name__/values") if m.startswith("antdt_")}
        conditional = {"antdt_agent_", "antdt_server_", "antdt_job_actions_total"}
        for text in (RULES.read_text(), DASHBOARD.read_text()):
            named = set(re.findall(r"\bantdt_[a-z0-9_]+[a-z0-9]\b", text)) - {"antdt_job"}
            missing = {n for n in named - known if not any(n.startswith(c) for c in conditional)}
            self.assertEqual(missing, set())
        # The rules are evaluated, each without an error.
        def evaluated():
            rules = [r for g in self.ask(server, "rules")["groups"] for r in g["rules"]]
            self.assertTrue(rules)
            return all(r["health"] == "ok" for r in rules)
        await_true(evaluated, 30, "all rules evaluated without an error")
        # So are the dashboard's queries.
        board = json.loads(DASHBOARD.read_text())
        queries = [t["expr"] for p in board["panels"] for t in p.get("targets", [])]
        self.assertGreater(len(queries), 5)
        for text in queries:
            text = text.replace("$__rate_interval", "10s").replace("$job", ".*")
            self.query(server, text.replace("$host", ".*"))
        self.stop()

    def test_the_alert_rules_are_well_formed(self):
        judged = subprocess.run([PROMTOOL, "check", "rules", str(RULES)], capture_output=True,
                                text=True, timeout=60)
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
        tested = subprocess.run(
            [PROMTOOL, "test", "rules", str(SOURCE / "tests/e2e/operate/alerts.test.yml")],
            capture_output=True, text=True, timeout=60, cwd=SOURCE)
        self.assertEqual(tested.returncode, 0, tested.stdout + tested.stderr)


if __name__ == "__main__":
    unittest.main()
