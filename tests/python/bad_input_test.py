"""Errors in a Python program are reported with a message; nothing hangs and nothing is lost."""
import json
import signal
import unittest

import python_jobs

# A program in which a test exchanges a part. It fails on the worker w1 alone, where it says so.
PROGRAM = """
import os, sys, time
import torch
import antdt.torch as adt

RECORDS = 2000
x = torch.arange(RECORDS, dtype=torch.float32).unsqueeze(1)
dataset = torch.utils.data.TensorDataset(x, x)
collate = None
torch.manual_seed(1)
net = torch.nn.Linear(1, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-9)
job = adt.init()
here = job.worker == "w1"
begun = int(os.environ["ANTDT_ATTEMPT"])
{change}
job.ddp(net)
job.state(model=net, opt=opt)
for epoch in job.epochs():
    for step in job.steps(adt.Loader(dataset, collate_fn=collate)):
        for mb in step:
            with step.micro(mb):
                step.backward(((net(mb.x) - mb.y) ** 2).sum(), weight=mb.weight)
            {amid}
        step.apply(opt)
    {after}
"""
RECORDS = 2000
PATIENT = '[failure]\nbudgets = { program = 3 }\n'


@python_jobs.needs_torch
class BadInput(python_jobs.PythonJobs):
    def job_of(self, change="", amid="pass", extra="", workers=2, after="pass"):
        program = self.write("program.py", PROGRAM.format(change=change, amid=amid, after=after))
        return self.toml(program, records=RECORDS, workers=workers, epochs=1, extra=extra)

    def failed_with(self, words, job):
        run = self.run_job(job, timeout=120)
        self.assertNotEqual(run.code, 0)
        self.assertRegex(run.err + run.out, words, run.explain())
        self.assert_nothing_left()

    def test_a_dataset_of_another_length_than_the_job_says(self):
        self.failed_with(r"the dataset has 1000 records, and job.toml says \[data\] records = 2000",
                         self.job_of("dataset = torch.utils.data.TensorDataset(x[:1000], x[:1000])"))

    def test_a_dataset_whose_length_differs_on_one_member(self):
        self.failed_with(r"the dataset has 1000 records",
                         self.job_of("if here: dataset = torch.utils.data.TensorDataset(x[:1000])"))

    def test_an_exception_in_the_step_of_one_member_costs_no_record(self):
        run = self.run_job(self.job_of(
            amid="""
            if here and begun == 1 and job.step == 5: raise ValueError("of the user's own")""",
            extra=PATIENT), timeout=120)
        self.assert_done(run)
        self.assert_once(run, 1, RECORDS)
        self.assertIn("of the user's own", json.dumps(run.summary["failures"]), run.explain())
        self.assert_nothing_left()

    def test_an_exception_in_a_micro_batch_costs_no_record(self):
        run = self.run_job(self.job_of("""
def collate(samples):
    if here and begun == 1 and job.step == 5: raise ValueError("a sample that is none")
    return torch.utils.data.default_collate(samples)""", extra=PATIENT), timeout=120)
        self.assert_done(run)
        self.assert_once(run, 1, RECORDS)
        self.assertIn("a sample that is none", json.dumps(run.summary["failures"]), run.explain())

    def test_a_collate_function_that_always_throws_ends_the_job(self):
        self.failed_with(r"collate_fn failed on records .*no batch", self.job_of("""
def collate(samples): raise ValueError("no batch")"""))

    def test_a_program_that_ends_amid_the_job_is_reported(self):
        self.failed_with("the program ended in the middle of the job",
                         self.job_of(amid="sys.exit(0) if job.step == 3 else None"))

    def test_a_job_that_adjusts_what_the_program_cannot(self):
        self.failed_with(r'declares adjust="size", and job.toml says \[batch\] adjust = "both"',
                         self.job_of('job.declare(adjust="size")'))

    def test_the_configuration_may_be_read_before_job_ddp(self):
        run = self.run_job(self.job_of("""
assert job.config["batch"]["global"] == 64 and os.path.isdir(job.run_dir)"""), timeout=120)
        self.assert_done(run)
        self.assert_once(run, 1, RECORDS)
        self.assertEqual(run.summary["failures"], [])

    def test_a_rank_that_is_asked_for_before_the_first_epoch(self):
        self.failed_with("job.rank is known from the first epoch on.*job.worker names it: w",
                         self.job_of("job.rank"))

    def test_an_evaluation_for_which_job_toml_has_no_records_is_told_once(self):
        run = self.run_job(self.job_of(after="""
    for _ in range(2): assert job.evaluate(adt.Loader(dataset), None) is None"""), timeout=120)
        self.assert_done(run)
        said = "".join(path.read_text() for path in (run.dir / "logs").glob("*.err"))
        self.assertEqual(said.count(r"write [data] eval_records = len(dataset)"), 1, said)

    def test_a_child_that_is_forked_amid_a_step_is_reported_and_harmless(self):
        run = self.run_job(self.job_of(amid="""
            if here and job.step == 3:
                child = os.fork()
                if child == 0:  # it ends as programs do, and not by _exit
                    try:
                        step.apply(opt)
                    except adt.Error as error:
                        print(error.name, error, flush=True)
                    sys.exit(0)
                os.waitpid(child, 0)"""), timeout=120)
        self.assert_done(run)
        self.assert_once(run, 1, RECORDS)
        self.assertEqual(run.summary["failures"], [])
        self.assertRegex((run.dir / "logs" / "w1.1.out").read_text(), "forked antdt_.*process")
        self.assert_nothing_left()

    def test_an_interrupt_of_the_launcher_stops_the_job_in_good_order(self):
        process, run_dir = self.start_job(self.job_of(amid="time.sleep(0.05)"))
        self.await_training(run_dir, 200)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, self.why(out, err, run_dir))
        resumed = self.antdt("run", "--resume", run_dir, timeout=120)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        audit = json.loads(self.antdt("data", "audit", run_dir, "--json").stdout)
        self.assertEqual([(e["once"], e["lost"]) for e in audit["epochs"]], [(RECORDS, 0)])
        self.assert_nothing_left()

    def test_a_worker_that_is_asked_to_leave_does_so_at_the_end_of_a_step(self):
        process, run_dir = self.start_job(self.job_of(amid="time.sleep(0.05)", workers=3))
        self.await_training(run_dir, 200)
        self.assertEqual(self.antdt("evict", run_dir, "w1").returncode, 0)
        summary = self.finish(process, run_dir)
        self.assertEqual(summary["samples_trained"], RECORDS)
        self.assertEqual(summary["failures"], [])
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
