"""A world of one: the same program outside a job."""
import math
import os
import signal
import subprocess
import sys
import textwrap
import unittest
from unittest import mock

import torch

import antdt.torch as adt

RECORDS = 100


def data():
    torch.manual_seed(1)
    x = torch.randn(RECORDS, 3, dtype=torch.float64)
    return torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))


class Unreadable:
    def __len__(self):
        return RECORDS

    def __getitem__(self, i):
        raise ValueError("no such picture")


class Program:
    """A loop whose parts a test exchanges."""

    def __init__(self, **options):
        torch.manual_seed(2)
        self.net = torch.nn.Linear(3, 1).double()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=0.01)
        self.job = adt.init(**dict(dict(batch_size=10), **options))
        self.job.ddp(self.net)
        self.given = {"model": self.net, "opt": self.opt}
        self.steps = []  # the records of each

    def loss_of(self, mb):
        return torch.nn.functional.mse_loss(self.net(mb.x), mb.y, reduction="sum")

    def micro(self, step, mb):
        with step.micro(mb):
            step.backward(self.loss_of(mb), weight=mb.weight)

    def apply(self, step):
        assert step.apply(self.opt)

    def after_epoch(self, epoch):
        pass

    def run(self, loader):
        try:
            self.job.state(**self.given)
            for epoch in self.job.epochs():
                for step in self.job.steps(loader):
                    records = []
                    for mb in step:
                        self.micro(step, mb)
                        records += mb.records
                    self.apply(step)
                    self.steps.append(records)
                self.after_epoch(epoch)
        finally:
            self.job.close()


class Alone(unittest.TestCase):
    def test_it_trains_as_a_plain_loop_over_the_same_records(self):
        program, x = Program(epochs=3, accumulation=2, seed=5), data().tensors[0]
        plain = torch.nn.Linear(3, 1).double()
        plain.load_state_dict(program.net.state_dict())
        program.run(adt.Loader(data()))
        optimizer = torch.optim.Adam(plain.parameters(), lr=0.01)
        for records in program.steps:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(plain(x[records]), x[records].sum(1, keepdim=True)).backward()
            optimizer.step()
        for ours, theirs in zip(program.net.parameters(), plain.parameters()):
            self.assertTrue(torch.allclose(ours, theirs, rtol=0, atol=1e-12))
        self.assertEqual(sorted(sum(program.steps, [])), sorted(list(range(RECORDS)) * 3))

    def test_processes_of_a_loader_read_the_ordered_records(self):
        program, x = Program(), data().tensors[0]
        micro = program.micro

        def compared(step, mb):
            self.assertTrue(torch.equal(mb.x, x[list(mb.records)]))
            micro(step, mb)
        program.micro = compared
        program.run(adt.Loader(data(), num_workers=3))
        self.assertEqual(sorted(sum(program.steps, [])), list(range(RECORDS)))

    def test_a_micro_batch_may_be_passed_over(self):
        program, micro, passed = Program(), Program.micro, []

        def maybe(step, mb):
            if passed:
                return micro(program, step, mb)
            with step.micro(mb):
                passed.append(mb)
                step.skip(mb, "unreadable")
        program.micro = maybe
        program.apply = lambda step: step.apply(program.opt)
        program.run(adt.Loader(data()))
        self.assertEqual(sorted(sum(program.steps, [])), list(range(RECORDS)))

    def test_where_it_stands_may_be_asked_before_it_begins(self):
        job = adt.init()
        self.assertEqual((job.config, job.run_dir, job.rank, job.size), ({}, "", 0, 1))
        job.ddp(torch.nn.Linear(1, 1))
        job.state()

    def test_evaluation_goes_over_all_records(self):
        program, loader, found = Program(epochs=2), adt.Loader(data()), []
        program.after_epoch = lambda epoch: found.append(program.job.evaluate(
            loader, lambda mb: adt.Sums(loss=program.loss_of(mb), correct=len(mb))))
        program.run(loader)
        self.assertEqual([(e.records, e.accuracy) for e in found], [(RECORDS, 1.0)] * 2)
        self.assertTrue(all(math.isnan(e.auc) for e in found))

    def test_the_program_has_sums_of_its_own(self):
        program, found = Program(), []
        program.after_epoch = lambda epoch: found.append(program.job.evaluate(
            adt.Loader(data()), lambda mb: adt.Sums(named={"y": mb.y.double().sum(), "ones": len(mb)})))
        program.run(adt.Loader(data()))
        self.assertEqual(list(found[0].sums), ["ones", "y"])
        self.assertEqual(found[0].sums["ones"], RECORDS)
        self.assertAlmostEqual(found[0].sums["y"], data().tensors[1].double().sum().item(), 6)

    def test_a_named_sum_has_a_name(self):
        for name in ("top 5", "", "a" * 65):
            with self.assertRaisesRegex(ValueError, f"a named sum is called '{name}': a name has"):
                adt.Sums.of({"named": {name: 1}}, 1)

    def test_the_area_under_the_curve_is_that_of_all_pairs(self):
        program, found = Program(), []
        program.after_epoch = lambda epoch: found.append(program.job.evaluate(
            adt.Loader(data()), lambda mb: adt.Sums(scores=mb.x[:, 0].sigmoid(), labels=mb.y > 0)))
        program.run(adt.Loader(data()))
        x, y = data().tensors
        pairs = x[y[:, 0] > 0][:, None, 0] - x[y[:, 0] <= 0][None, :, 0]
        self.assertAlmostEqual(found[0].auc, (pairs > 0).double().mean().item(), 3)


class Misuse(unittest.TestCase):
    """Each mistake is reported with a message, and nothing waits for ever."""

    def check(self, words, loader=None, error=RuntimeError, **parts):
        program = Program()
        for name, part in parts.items():
            setattr(program, name, part)
        with self.assertRaisesRegex(error, words):
            program.run(loader or adt.Loader(data()))

    def test_a_micro_batch_without_a_backward(self):
        def empty(step, mb):
            with step.micro(mb):
                pass
        self.check("left without step.backward", micro=empty)

    def test_a_micro_batch_that_is_not_computed(self):
        self.check("compute each of them in", micro=lambda step, mb: None)

    def test_a_step_without_apply(self):
        self.check("left without step.apply", apply=lambda step: None)

    def test_apply_before_the_micro_batches_are_through(self):
        self.check("there are micro-batches left",
                   micro=lambda step, mb: step.apply())

    def test_an_optimizer_that_is_no_part_of_the_state(self):
        program = Program()
        del program.given["opt"]
        with self.assertRaisesRegex(RuntimeError, "not in job.state"):
            program.run(adt.Loader(data()))

    def test_a_model_that_is_no_part_of_the_state(self):
        program = Program()
        del program.given["model"]
        with self.assertRaisesRegex(RuntimeError, "has to hold what job.ddp was given"):
            program.run(adt.Loader(data()))

    def test_a_record_that_cannot_be_read(self):
        self.check("cannot read record .*no such picture", adt.Loader(Unreadable()))

    def test_a_collate_function_that_throws(self):
        for workers in (0, 2):
            with self.subTest(workers=workers):
                self.check("collate_fn failed on records .*ZeroDivisionError",
                           adt.Loader(data(), num_workers=workers, collate_fn=lambda s: 1 / 0))

    def test_a_process_of_the_loader_that_is_killed(self):
        self.check("exit code -9", adt.Loader(data(), num_workers=1, collate_fn=lambda s: os.kill(
            os.getpid(), signal.SIGKILL)))

    def test_data_that_are_no_map_style_dataset(self):
        with self.assertRaisesRegex(TypeError, "has to be a map-style one"):
            adt.Loader(iter([1, 2]))

    def test_a_data_loader_of_pytorch(self):
        loader = torch.utils.data.DataLoader(data(), batch_size=10)
        self.check(r"job.steps was given a DataLoader.*give adt.Loader\(dataset, collate_fn=", loader,
                   error=TypeError)
        program = Program()
        program.after_epoch = lambda epoch: program.job.evaluate(loader, lambda mb: adt.Sums())
        with self.assertRaisesRegex(TypeError, "job.evaluate was given a DataLoader"):
            program.run(adt.Loader(data()))
        with self.assertRaisesRegex(TypeError, "give it the DataLoader's dataset"):
            adt.Loader(loader)

    def test_options_of_a_data_loader_that_the_job_decides(self):
        for option, words in (("batch_size", r"\[batch\] global"), ("shuffle", "data.shuffle"),
                              ("sampler", "Subset"), ("drop_last", "weighed by its records"),
                              ("pin_memory", "pin_memory.. in the loop"), ("worker_init_fn", "forked"),
                              ("colour", "it has dataset, collate_fn, num_workers and prefetch")):
            with self.assertRaisesRegex(TypeError, f"adt.Loader has no {option}.*{words}"):
                adt.Loader(data(), **{option: None})

    def test_settings_that_are_no_numbers_or_too_small(self):
        for options, error in (({"batch_size": 0}, ValueError), ({"epochs": "3"}, TypeError),
                               ({"accumulation": -1}, ValueError), ({"seed": -1}, ValueError),
                               ({"read_ahead": 1.5}, TypeError)):
            with self.assertRaisesRegex(error, f"adt.init.{list(options)[0]}="):
                adt.init(**options)

    def test_a_rank_before_there_is_one(self):
        with mock.patch.dict(os.environ, ANTDT_SOCKET="/nowhere", ANTDT_WORKER_ID="w3"):
            job = adt.init()
            self.assertEqual(job.worker, "w3")
            for ask in (lambda: job.rank, lambda: job.size):
                with self.assertRaisesRegex(RuntimeError, "known from the first epoch on.*names it: w3"):
                    ask()

    def test_a_module_that_waits_for_all_in_each_forward(self):
        with self.assertRaisesRegex(TypeError, "SyncBatchNorm waits"):
            adt.init().ddp(torch.nn.Sequential(torch.nn.SyncBatchNorm(3)))

    def test_a_loss_that_is_no_sum(self):
        def micro(loss):
            def one(step, mb):
                with step.micro(mb):
                    step.backward(loss(mb), weight=mb.weight)
            return one
        net = Program().net
        self.check(r"shape \(10, 1\) is no sum; .*reduction=\"sum\"", error=ValueError,
                   micro=micro(lambda mb: net(mb.x)))
        self.check("a float has no gradients.*not its .item", error=TypeError,
                   micro=micro(lambda mb: net(mb.x).sum().item()))
        self.check("depends on no parameter that is trained", error=ValueError,
                   micro=micro(lambda mb: net(mb.x).sum().detach()))

    def test_a_loss_without_a_weight(self):
        with self.assertRaises(TypeError):
            adt.Step(None, None).backward(torch.zeros(()))

    def test_a_child_that_is_forked_after_the_begin(self):
        program, told = Program(), []

        def apply(step):
            step.apply(program.opt)
            if told:
                return
            here, there = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    program.job._member.next()
                except adt.Error as error:
                    os.write(there, f"{error.name} {error}".encode())
                os._exit(0)
            os.close(there)
            told.append(os.read(here, 1000).decode())
            os.close(here)
            os.waitpid(child, 0)
        program.apply = apply
        program.run(adt.Loader(data()))
        self.assertTrue(told[0].startswith("forked "), told)
        self.assertEqual(sorted(sum(program.steps, [])), list(range(RECORDS)))


class Ends(unittest.TestCase):
    def run_program(self, text):
        begin = "import alone_test, os, signal\nfrom alone_test import *\nprogram = Program()\n"
        return subprocess.run([sys.executable, "-c", begin + textwrap.dedent(text)], timeout=60,
                              capture_output=True, text=True, cwd=os.path.dirname(__file__))

    def test_an_interrupt_ends_it(self):
        done = self.run_program("""
            program.apply = lambda step: os.kill(os.getpid(), signal.SIGINT)
            program.run(adt.Loader(data()))
            print("went on")
            """)
        self.assertIn("KeyboardInterrupt", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_program_that_ends_amid_an_epoch_ends(self):
        done = self.run_program("""
            program.job.state(**program.given)
            for epoch in program.job.epochs():
                for step in program.job.steps(adt.Loader(data())):
                    sys.exit(3)
            """)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_an_error_is_told_once(self):
        done = self.run_program("program.run(torch.utils.data.DataLoader(data()))")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("Traceback"), 1, done.stderr)

    def test_a_forked_child_is_ended_by_the_signal_that_asks_its_parent_to_leave(self):
        done = self.run_program("""
            import multiprocessing
            started = multiprocessing.Event()
            def wait_for_ever():
                started.set()
                signal.pause()
            child = multiprocessing.get_context("fork").Process(target=wait_for_ever, daemon=True)
            child.start()
            started.wait()
            child.terminate()
            child.join(20)
            print(child.exitcode)
            """)
        self.assertEqual(done.stdout, f"{-signal.SIGTERM}\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
