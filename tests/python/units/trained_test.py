"""Which parameters are trained: layers that a program freezes and trains again, and gradients that it
throws away."""
import copy
import unittest

import torch

import antdt.torch as adt
from antdt.torch._gradients import Gradients
from antdt.torch._state import State
from memory import Memory, Reducing

RECORDS = 64


def data():
    x = torch.randn(RECORDS, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))


def net():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()


def freeze(module, frozen):
    for p in module.parameters():
        p.requires_grad_(not frozen)


class Program:
    """A world of one of three epochs whose first layer is changed before some of them."""

    def __init__(self, optimizer, changes, before=lambda net: None, early=True):
        self.net, self.records, self.layers = net(), [], []
        self.job = adt.init(epochs=3, batch_size=8, accumulation=2)
        self.changes = changes
        if not early:
            before(self.net)
        self.opt = optimizer(self.net.parameters())
        self.job.ddp(self.net)
        self.job.state(model=self.net, opt=self.opt)
        if early:
            before(self.net)

    def amid(self, step, n):
        pass

    def after(self):
        pass

    def behind(self):
        pass

    def loss_of(self, mb):
        return torch.nn.functional.mse_loss(self.net(mb.x), mb.y, reduction="sum")

    def run(self):
        try:
            for epoch in self.job.epochs():
                if epoch in self.changes:
                    freeze(self.net[0], self.changes[epoch])
                for step in self.job.steps(adt.Loader(data())):
                    records = []
                    for n, mb in enumerate(step):
                        with step.micro(mb):
                            self.amid(step, n)
                            step.backward(self.loss_of(mb), weight=mb.weight)
                            self.after()
                        records += mb.records
                    self.behind()
                    assert step.apply(self.opt)
                    self.records.append((epoch, records))
                self.layers.append(self.net[0].weight.detach().clone())
        finally:
            self.job.close()


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
}


class Freezing(unittest.TestCase):
    def check_as_plain(self, optimizer, changes, **options):
        """The same as a loop of PyTorch's over the same records."""
        program = Program(optimizer, changes, **options)
        plain = copy.deepcopy(program.net)
        program.run()
        opt, dataset, before = optimizer(plain.parameters()), data(), None
        for epoch, records in program.records:
            if epoch != before and epoch in changes:
                freeze(plain[0], changes[epoch])
            before = epoch
            opt.zero_grad(set_to_none=True)
            x, y = (t[records] for t in dataset.tensors)
            torch.nn.functional.mse_loss(plain(x), y).backward()
            opt.step()
        for ours, theirs in zip(program.net.parameters(), plain.parameters()):
            self.assertTrue(torch.allclose(ours, theirs, rtol=0, atol=1e-12))
        return program

    def test_a_layer_that_is_frozen_later_stays_where_it_is(self):
        for name, optimizer in OPTIMIZERS.items():
            with self.subTest(name):
                program = self.check_as_plain(optimizer, {1: True})
                self.assertTrue(torch.equal(program.layers[0], program.layers[2]))

    def test_a_layer_that_was_frozen_after_job_state_is_trained_later(self):
        for name, optimizer in OPTIMIZERS.items():
            with self.subTest(name):
                program = self.check_as_plain(optimizer, {1: False, 2: True},
                                              before=lambda net: freeze(net[0], True))
                self.assertFalse(torch.equal(program.layers[0], program.layers[1]))
                self.assertTrue(torch.equal(program.layers[1], program.layers[2]))

    def test_a_layer_that_was_frozen_before_job_ddp_is_trained_later_if_the_optimizer_keeps_nothing(self):
        self.check_as_plain(OPTIMIZERS["SGD"], {1: False}, early=False,
                            before=lambda net: freeze(net[0], True))

    def test_if_the_optimizer_keeps_something_the_error_names_the_parameter_and_says_what_to_do(self):
        program = Program(OPTIMIZERS["AdamW"], {1: False}, early=False,
                          before=lambda net: freeze(net[0], True))
        with self.assertRaisesRegex(RuntimeError, r"0\.weight was frozen when job.state was called .*call "
                                                  r"job.state\(opt=…\) before you freeze"):
            program.run()

    def test_an_optimizer_that_keeps_something_of_some_parameters_is_no_reason_to_refuse_others(self):
        def optimizer(parameters):
            first, second, *rest = parameters
            return torch.optim.SGD([{"params": [first, second], "momentum": 0.9}, {"params": rest}], lr=0.1)
        self.check_as_plain(optimizer, {1: True, 2: False})

    def test_what_is_frozen_for_good_is_neither_summed_nor_kept(self):
        module, member, memory, state = net(), Reducing(), Memory(), State()
        freeze(module[0], True)
        gradients = Gradients(module, 1 << 20, True)
        gradients.finish(member, 2)
        self.assertEqual(sum(member.handed), 9, "of the last layer")
        state.add({"opt": torch.optim.Adam(module.parameters())})
        state.begin(memory)
        self.assertNotIn("opt/state/0/exp_avg", memory.parts)
        self.assertIn("opt/state/2/exp_avg", memory.parts)

    def test_what_a_micro_batch_freezes_and_leaves_frozen_is_trained_in_the_next_step(self):
        """As a discriminator, while its generator is trained: members without a micro-batch do not."""
        program = Program(OPTIMIZERS["SGD"], {})
        begun = program.net[0].weight.detach().clone()
        program.amid = lambda step, n: freeze(program.net[0], False)
        program.after = lambda: freeze(program.net[0], True)
        program.run()
        moved = [begun, *program.layers]
        self.assertTrue(all(not torch.equal(a, b) for a, b in zip(moved, moved[1:])))

    def test_a_layer_that_is_first_trained_amid_a_step_is_refused_in_words(self):
        program = Program(OPTIMIZERS["SGD"], {}, before=lambda net: freeze(net[0], True))
        program.amid = lambda step, n: freeze(program.net[0], False)
        with self.assertRaisesRegex(RuntimeError, r"0\.weight was frozen when the step began.*before `for mb"):
            program.run()

    def test_who_takes_the_state_over_freezes_the_same(self):
        members = []
        for frozen in (True, False):
            module, state, memory = net(), State(), Memory()
            gradients = Gradients(module, 1 << 20, True)
            state.follow(gradients.trained)
            state.add({"model": module})
            state.begin(memory)
            members.append((module, gradients, state, memory))
            freeze(module[0], frozen)
        for frozen, (source, target) in ((True, members), (False, members)):
            freeze(source[0][0], frozen)
            for _, _, state, memory in members:
                state.bring_up_to_date(memory)
            target[3].receive(source[3])
            target[2].replaced()
            target[1].begin_step()
            self.assertEqual([p.requires_grad for p in target[0].parameters()], [not frozen] * 2 + [True] * 2)
            self.assertEqual(len(target[1].parameters()), 2 if frozen else 4)


class ThrownAway(unittest.TestCase):
    def check(self, words, **parts):
        program = Program(OPTIMIZERS["SGD"], {})
        for name, part in parts.items():
            setattr(program, name, part(program))
        with self.assertRaisesRegex(RuntimeError, words):
            program.run()

    def test_zero_grad_between_the_micro_batches_of_a_step(self):
        self.check("take zero_grad.* out of the loop over micro-batches", amid=lambda program: (
            lambda step, n: program.opt.zero_grad(set_to_none=False)))

    def test_zero_grad_before_apply(self):
        self.check("take zero_grad.* out of the loop over steps", behind=lambda program: (
            lambda: program.opt.zero_grad(set_to_none=False)))

    def test_clipping_before_the_sum(self):
        self.check("step.apply.optimizer, clip=", behind=lambda program: (
            lambda: torch.nn.utils.clip_grad_norm_(program.net.parameters(), 1e-3)))

    def test_zero_grad_that_throws_nothing_away_is_harmless(self):
        programs = [Program(OPTIMIZERS["SGD"], {}) for _ in range(3)]
        programs[1].amid = lambda step, n: programs[1].opt.zero_grad(set_to_none=False) if n == 0 else None
        programs[2].amid = lambda step, n: programs[2].opt.zero_grad(set_to_none=True)
        for program in programs:
            program.run()
            self.assertTrue(torch.equal(program.layers[2], programs[0].layers[2]))


class Shared(unittest.TestCase):
    def test_a_parameter_in_two_modules_is_refused_by_name(self):
        job, module = adt.init(), net()
        job.ddp(module)
        with self.assertRaisesRegex(ValueError, "0.weight is in a module that job.ddp was given before"):
            job.ddp(module)
        with self.assertRaisesRegex(ValueError, "2.weight is in"):
            job.ddp(torch.nn.Sequential(net()[0], torch.nn.Tanh(), module[2]))
        job.ddp(net())


if __name__ == "__main__":
    unittest.main()
