"""antdt bench stragglers and antdt report: real jobs, a line for each cell, the reason if one
cannot be run, and their pages."""

import json
import re
import signal
import subprocess
import unittest
import xml.etree.ElementTree

import shared  # noqa: F401 (finds what follows)
from harness import ANTDT, EndToEnd, await_true, needs_trainer, processes_of

FIELDS = {"situation", "solution", "workers", "job_seconds", "ideal_seconds", "share_of_ideal",
          "speedup_over_none", "actions", "records_repeated", "records_lost"}


def job_id(run_dir):
    return json.loads((run_dir / "summary.json").read_text())["job"]


@needs_trainer
class BenchStragglers(EndToEnd):
    def test_each_cell_has_a_line_and_cells_not_run_have_the_reason(self):
        out = self.dir / "out"
        # In a whole comparison the windows determine the length of a job; this one is shorter.
        run = self.antdt("bench", "stragglers", "--quick", "--only", "persistent,slow-server,pai-4",
                         "--solutions", "none,nd", "--seconds", "8", "--at-once", "2", "--out", out,
                         "--json", timeout=600)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        lines = json.loads(run.stdout)
        self.assertEqual(json.loads((out / "result.json").read_text()), lines)
        cells = [(line["situation"], line["solution"]) for line in lines]
        self.assertEqual(cells, [("persistent", "none"), ("persistent", "nd"),
                                 ("pai-4", "none"), ("pai-4", "nd"),
                                 ("slow-server", "none"), ("slow-server", "nd")])
        for line in lines:
            self.assertLessEqual(FIELDS, set(line), line)
        none, nd, *not_run = lines[:4]
        for line in (none, nd, *lines[4:]):
            summary = json.loads((out / f"{line['situation']}.{line['solution']}.1" /
                                  "summary.json").read_text())
            self.assertEqual(line["job_seconds"], summary["training_seconds"])
            self.assertEqual(line["workers"], len(summary["workers"]))
            self.assertGreater(line["job_seconds"], 0)
            # A busy machine can only reduce the share.
            self.assertGreater(line["share_of_ideal"], 0)
            self.assertLess(line["share_of_ideal"], 1.05)
            self.assertEqual(line["records_repeated"] + line["records_lost"], 0)
        self.assertEqual(none["speedup_over_none"], 1)
        self.assertEqual(none["actions"], 0)
        for line in not_run:
            self.assertIsNone(line["job_seconds"])
            self.assertIn("--traces", line["not_run"])
        self.assert_page(out / "index.html", [f"{situation}, {solution}" for situation in
                                              ("persistent", "slow-server")
                                              for solution in ("none", "nd")], workers=8)
        run_dir = out / "persistent.nd.1"
        report = self.antdt("report", run_dir)
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertEqual(report.stdout.strip(), str(run_dir / "report.html"))
        self.assert_page(run_dir / "report.html", [job_id(run_dir)], workers=8)
        again = self.antdt("bench", "stragglers", "--quick", "--out", out)
        self.assertEqual(again.returncode, 2, again.stderr)
        self.assertIn(str(out), again.stderr)
        self.assert_nothing_left()

    def assert_page(self, path, headings, workers):
        """Well-formed, with a line for each worker in the two plots of each run."""
        text = path.read_text()
        for heading in headings:
            self.assertIn(f">{heading}</h", text)
        tree = xml.etree.ElementTree.fromstring(
            re.sub(r"<meta [^>]*>", "", text.removeprefix("<!DOCTYPE html>")))
        lines = [line.find("title").text for line in tree.iter("path")]
        self.assertEqual(sorted(lines),
                         sorted([f"w{i}" for i in range(workers)] * 2 * len(headings)))
        for line in tree.iter("path"):
            self.assertTrue(line.get("d").startswith("M"), "a worker without a measurement")

    def test_a_signal_ends_its_jobs_too(self):
        out = self.dir / "out"
        bench = subprocess.Popen(
            [ANTDT, "bench", "stragglers", "--quick", "--only", "none", "--solutions", "none",
             "--out", str(out)], env=self.env, cwd=self.dir, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        await_true(lambda: any("antdt-instrument" in command for _, command in
                               processes_of(str(self.runtime))), 60, "its job runs")
        bench.send_signal(signal.SIGTERM)
        bench.communicate(timeout=120)
        self.assertEqual(bench.returncode, 128 + signal.SIGTERM)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
