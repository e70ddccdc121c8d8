"""Jobs on hosts that share nothing; see separate_hosts.py."""

import json
import os
import unittest

import tally
from harness import await_true, needs_trainer
from separate_hosts import INSIDE, SeparateHosts, run_inside

RECORDS = 6000


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class AllReduce(SeparateHosts):
    def job(self, hosts, extra="", **options):
        options = {"workers": 2, "records": RECORDS, **options}
        extra = 'resources = { cpus = 1 }\n' + extra
        text = tally.job(extra=self.cluster(*hosts), **options)
        text = text.replace('command = ["antdt-trainer"]', 'command = ["antdt-trainer"]\n' + extra)
        return self.write("job.toml", text + '[checkpoint]\nevery = "1s"\n')

    def test_the_launching_host_has_what_workers_elsewhere_wrote(self):
        b, c = self.add_host("hostb"), self.add_host("hostc")
        process, run_dir = self.launch(self.job([b, c], workers=4, delay="10ms"))
        summary = self.finish(process, run_dir)
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assertEqual({w["host"] for w in summary["workers"]}, {"hostb", "hostc"})
        last = tally.newest(run_dir).name
        copies = [h.name for h in (b, c) if last in self.checkpoints_on(h, run_dir)[0]]
        self.assertEqual(len(copies), 1, "checkpoint.copies = 2: here and on one more host")
        self.assert_hosts_have_nothing_left(run_dir)


class InNamespacesOfTheirOwn(unittest.TestCase):
    def test_all_reduce(self):
        run_inside(self, __file__, "AllReduce")


if __name__ == "__main__":
    unittest.main()
