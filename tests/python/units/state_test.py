"""Tests that the state given to job.state() reaches another member complete."""
import collections
import json
import unittest
import unittest.mock

import numpy
import torch

from antdt.torch._state import JSON_PART, State
from memory import Memory


class Program:
    """A model with its optimizer and schedule, as each member makes them."""

    def __init__(self, seed, optimizer, schedule=None, net=None):
        torch.manual_seed(seed)
        self.net = net() if net else torch.nn.Sequential(
            torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
        self.opt = optimizer(self.net.parameters())
        self.state, self.memory = State(), Memory()
        self.schedule = schedule(self.opt) if schedule else None
        self.state.add({"model": self.net, "opt": self.opt})
        if self.schedule:
            self.state.add({"sched": self.schedule})
        self.state.begin(self.memory)

    def train(self, steps):
        generator = torch.Generator().manual_seed(5)
        for _ in range(steps):
            self.opt.zero_grad()
            self.net(torch.randn(8, 3, generator=generator)).pow(2).sum().backward()
            self.opt.step()
            if self.schedule:
                self.schedule.step()

    def heal(self, source):
        """Takes over the state of another."""
        source.state.bring_up_to_date(source.memory)
        self.state.bring_up_to_date(self.memory)
        self.memory.receive(source.memory)
        self.state.replaced()

    def bytes(self):
        self.state.bring_up_to_date(self.memory)
        return self.memory.all_bytes()


class Kept:
    """Anything with a state_dict."""

    def __init__(self, held):
        self.held = held

    def state_dict(self):
        return self.held

    def load_state_dict(self, state):
        self.held = state


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD with momentum, dampening and decay": lambda p: torch.optim.SGD(
        p, lr=0.01, momentum=0.9, dampening=0.5, weight_decay=0.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW with amsgrad": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "RMSprop, centered": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.1, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.01),
}
SCHEDULES = {
    "OneCycleLR": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=50),
    "MultiStepLR": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [2, 3]),
    "CosineAnnealingWarmRestarts": lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
        o, 4),
    "LambdaLR": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda n: 0.9 ** n),
    "SequentialLR": lambda o: torch.optim.lr_scheduler.SequentialLR(
        o, [torch.optim.lr_scheduler.LinearLR(o, 0.1, total_iters=2),
            torch.optim.lr_scheduler.ExponentialLR(o, 0.9)], [2]),
}


class Healing(unittest.TestCase):
    def check(self, optimizer, steps, schedule=None):
        source, newcomer = Program(1, optimizer, schedule), Program(2, optimizer, schedule)
        source.train(steps)
        newcomer.heal(source)
        self.assertEqual(source.bytes(), newcomer.bytes())
        source.train(3)
        newcomer.train(3)
        self.assertEqual(source.bytes(), newcomer.bytes(), "they part once they go on")

    def test_a_newcomer_goes_on_as_the_others_with_every_optimizer(self):
        for name, optimizer in OPTIMIZERS.items():
            for steps in (0, 1, 4):
                with self.subTest(name, steps=steps):
                    self.check(optimizer, steps)

    def test_a_newcomer_goes_on_as_the_others_with_every_schedule(self):
        for name, schedule in SCHEDULES.items():
            with self.subTest(name):
                self.check(OPTIMIZERS["SGD with momentum, dampening and decay"], 5, schedule)

    def test_a_member_that_is_ahead_goes_back_to_the_state_of_the_others(self):
        source, ahead = (Program(1, OPTIMIZERS["Adam"]) for _ in range(2))
        source.train(2)
        ahead.train(3)
        ahead.heal(source)
        self.assertEqual(source.bytes(), ahead.bytes())

    def test_a_member_that_is_ahead_goes_back_to_before_the_first_step(self):
        source, ahead = (Program(1, OPTIMIZERS["Adam"]) for _ in range(2))
        ahead.train(2)
        ahead.heal(source)
        self.assertEqual(len(ahead.opt.state), 0)
        self.assertEqual(source.bytes(), ahead.bytes())


class Registering(unittest.TestCase):
    def test_the_first_step_is_as_without_a_job(self):
        for name, optimizer in OPTIMIZERS.items():
            with self.subTest(name):
                registered = Program(1, optimizer)
                torch.manual_seed(1)
                plain = Program(1, optimizer)
                plain.opt = optimizer(plain.net.parameters())
                registered.train(4)
                plain.train(4)
                for a, b in zip(registered.net.parameters(), plain.net.parameters()):
                    self.assertTrue(torch.equal(a, b))

    def test_the_same_parts_are_registered_before_and_after_the_first_step(self):
        program = Program(1, OPTIMIZERS["Adam"])
        before = {n: (p[0], p[2], p[3]) for n, p in program.memory.parts.items()}
        program.train(1)
        program.state.bring_up_to_date(program.memory)
        after = {n: (p[0], p[2], p[3]) for n, p in program.memory.parts.items()}
        self.assertEqual(before, after)

    def test_an_optimizers_state_is_never_there_for_all_parameters_before_its_first_step(self):
        """A device may have no room for it."""
        made = []

        class Watched(torch.optim.Adam):
            def step(self):
                super().step()
                made.append(sum(v.numel() for state in self.state.values() for v in state.values()))
        with unittest.mock.patch("antdt.torch._state._PROBED_BYTES", 4 * 20):
            program = Program(1, lambda p: Watched(p, lr=0.01))
        # 12 + 4 + 4 numbers of the first two layers fit the bound, then 4 + 4 + 1; twice, and their counts of steps.
        self.assertEqual(made, [2 * 20 + 3, 2 * 9 + 3])
        self.assertEqual(len(program.opt.state), 0)
        self.assertEqual([p.grad for p in program.net.parameters()], [None] * 6)
        plain = Program(1, OPTIMIZERS["Adam"])
        self.assertEqual(program.bytes(), plain.bytes())

    def test_an_optimizer_that_reads_the_gradients_of_all_parameters_gets_them(self):
        class OfAll(torch.optim.Adam):
            def step(self):
                norm = sum(p.grad.norm() for group in self.param_groups for p in group["params"])
                assert norm == 0
                super().step()
        with unittest.mock.patch("antdt.torch._state._PROBED_BYTES", 4 * 20):
            program = Program(1, lambda p: OfAll(p, lr=0.01))
        plain = Program(1, OPTIMIZERS["Adam"])
        self.assertEqual(program.bytes(), plain.bytes())
        self.assertEqual(len(program.opt.state), 0)
        self.assertEqual([p.grad for p in program.net.parameters()], [None] * 6)

    def test_an_optimizer_that_fails_with_some_gradients_and_with_all_is_refused_with_both_reasons(self):
        class Failing(torch.optim.SGD):
            def step(self):
                with_gradients = sum(p.grad is not None for p in self.param_groups[0]["params"])
                raise ValueError(f"no room for {with_gradients}")
        with unittest.mock.patch("antdt.torch._state._PROBED_BYTES", 4 * 20):
            with self.assertRaisesRegex(TypeError, r"Failing cannot take a step .*\(of some of the 6 parameters: "
                                                   r"ValueError: no room for 3; of all: ValueError: no room for 6\)"):
                Program(1, lambda p: Failing(p, lr=0.01))

    def test_what_is_to_come_is_held_once_and_made_as_it_is_to_be(self):
        """A matrix that is not contiguous stands for one on a device: both go by a copy."""
        def turned():
            net = torch.nn.Linear(3, 2, bias=False)
            net.weight = torch.nn.Parameter(torch.randn(3, 2).t())
            return net
        source, newcomer = (Program(seed, OPTIMIZERS["Adam"], net=turned) for seed in (1, 2))
        part, name = newcomer.state._entries[1].parts["opt/state/0/exp_avg"], "opt/state/0/exp_avg"
        registered = newcomer.memory.parts[name][1]
        self.assertEqual(part.tensor.data_ptr(), registered, "a second memory")
        source.train(2)
        newcomer.heal(source)
        ours, theirs = (p.opt.state[p.net.weight]["exp_avg"] for p in (newcomer, source))
        self.assertEqual(ours.stride(), theirs.stride())
        self.assertTrue(torch.equal(ours, theirs))
        self.assertIs(part.tensor, ours)
        self.assertEqual(newcomer.bytes(), source.bytes())
        self.assertEqual(newcomer.memory.parts[name][1], registered)

    def test_counters_that_an_optimizer_has_beside_its_state_are_as_before(self):
        class Counting(torch.optim.SGD):
            steps = 0

            def step(self):
                self.steps = self.steps + 1
                self.param_groups[0]["lr"].mul_(0.5)
                super().step()

        def counting(parameters):
            optimizer = Counting(parameters, lr=0.1)
            optimizer.param_groups[0]["lr"] = rate
            optimizer.steps = 0
            return optimizer
        rate = torch.tensor(1.0)
        program = Program(1, counting)
        self.assertEqual(program.opt.steps, 0)
        self.assertIs(program.opt.param_groups[0]["lr"], rate)
        self.assertEqual(float(rate), 1)

    def test_parameters_are_registered_in_place(self):
        program = Program(1, OPTIMIZERS["SGD"])
        self.assertEqual(program.memory.parts["model/0.weight"][1],
                         program.net[0].weight.data_ptr())

    def test_tied_weights_are_one_part(self):
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
                self.b.weight = self.a.weight

            def forward(self, x):
                return self.b(self.a(x))
        source, newcomer = (Program(seed, OPTIMIZERS["Adam"], net=Tied) for seed in (1, 2))
        self.assertNotIn("model/b.weight", source.memory.parts)
        source.train(2)
        newcomer.heal(source)
        self.assertTrue(torch.equal(source.net.b.weight, newcomer.net.b.weight))
        self.assertIs(newcomer.net.a.weight, newcomer.net.b.weight)

    def test_a_tensor_that_is_not_contiguous_goes_by_a_copy(self):
        class Turned(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.randn(2, 3).t())

            def forward(self, x):
                return x @ self.w
        source, newcomer = (Program(seed, OPTIMIZERS["Adam"], net=Turned) for seed in (1, 2))
        source.train(2)
        newcomer.heal(source)
        self.assertTrue(torch.equal(source.net.w, newcomer.net.w))
        self.assertFalse(newcomer.net.w.is_contiguous())

    def test_a_generator_goes_on_where_the_other_was(self):
        states, memories, generators = [State(), State()], [Memory(), Memory()], []
        for seed, (state, memory) in enumerate(zip(states, memories)):
            generators.append(torch.Generator().manual_seed(seed))
            state.add({"random": generators[-1]})
            state.begin(memory)
        torch.rand(7, generator=generators[0])
        for state, memory in zip(states, memories):
            state.bring_up_to_date(memory)
        memories[1].receive(memories[0])
        states[1].replaced()
        self.assertTrue(torch.equal(*(torch.rand(5, generator=g) for g in generators)))

    def test_an_optimizer_that_needs_a_closure_is_refused_in_words(self):
        with self.assertRaisesRegex(TypeError, "needs no closure"):
            Program(1, lambda p: torch.optim.LBFGS(p))

    def test_an_optimizer_that_takes_sparse_gradients_alone_is_refused_in_words(self):
        with self.assertRaisesRegex(TypeError, r"job.state\(opt=…\): SparseAdam cannot take a step by itself.*"
                                               r"does not support dense gradients.*dense gradients$"):
            Program(1, lambda p: torch.optim.SparseAdam(list(p)))

    def test_an_object_without_state_dict_is_refused_with_the_reason(self):
        state = State()
        state.add({"thing": object()})
        with self.assertRaisesRegex(TypeError, "thing.*has no state_dict"):
            state.begin(Memory())

    def test_values_that_outgrow_their_room_are_refused_in_words(self):
        class History:
            values = []

            def state_dict(self):
                return {"values": self.values}

            def load_state_dict(self, state):
                self.values = state["values"]
        history, state, memory = History(), State(), Memory()
        state.add({"history": history})
        state.begin(memory)
        history.values = [0.123456789] * 10000
        with self.assertRaisesRegex(ValueError, "keep histories"):
            state.bring_up_to_date(memory)

    def pass_on(self, first, second):
        """The state of one thing is taken over by the other."""
        states, memories = [State(), State()], [Memory(), Memory()]
        for thing, state, memory in zip((first, second), states, memories):
            state.add({"n": thing})
            state.begin(memory)
        for state, memory in zip(states, memories):
            state.bring_up_to_date(memory)
        memories[1].receive(memories[0])
        states[1].replaced()

    def test_arrays_of_numpy_and_sets_survive(self):
        arrays = [numpy.arange(6.0).reshape(2, 3).T, numpy.array([1, 65535], dtype=numpy.uint16),
                  numpy.array(2.5), numpy.zeros((0, 3)), numpy.array([True, False]), numpy.array([1 + 2j]),
                  numpy.array(["a", "Ω"]), numpy.array([0.1, float("nan")], dtype=numpy.float16)]
        first = Kept({"arrays": arrays, "set": {1, "a"}, "frozen": frozenset([2.5]), "on": torch.device("cpu")})
        second = Kept({"arrays": [numpy.zeros_like(a) for a in arrays], "set": set(), "frozen": frozenset(),
                       "on": torch.device("cpu")})
        self.pass_on(first, second)
        for ours, theirs in zip(second.held["arrays"], arrays):
            self.assertEqual((ours.dtype, ours.shape, ours.tobytes()),
                             (theirs.dtype, theirs.shape, theirs.tobytes()))
            self.assertTrue(ours.flags.writeable)
        for key in ("set", "frozen", "on"):
            self.assertEqual(second.held[key], first.held[key])

    def test_a_value_that_would_not_be_kept_is_refused_with_its_path(self):
        for value in (object(), {(1, 2): 3}, collections.deque([1]), numpy.array([None]), 1j):
            state = State()
            state.add({"n": Kept({"a": [0, value]})})
            with self.assertRaisesRegex(TypeError, rf"job.state\(n=…\): n/a/1 is a .*{type(value).__name__}, and "
                                                   r"would not be kept"):
                state.begin(Memory())

    def test_members_with_other_entries_are_told_which(self):
        states, memories = [State(), State()], [Memory(), Memory()]
        for state, memory, names in zip(states, memories, ("ab", "ac")):
            state.add({name: Kept({"v": 1}) for name in names})
            state.begin(memory)
        memories[1].receive(memories[0])
        with self.assertRaisesRegex(RuntimeError, "was given a, c here, and a, b where the state comes from"):
            states[1].replaced()

    def test_counters_functions_and_tuples_survive(self):
        class Mixed:
            def __init__(self, n):
                self.held = {"c": collections.Counter({2: n}), "f": len, "t": (n, b"\x00a"),
                             3: [None, True], "nan": float("inf")}

            def state_dict(self):
                return self.held

            def load_state_dict(self, state):
                self.held = state
        first, second = Mixed(1), Mixed(2)
        states, memories = [State(), State()], [Memory(), Memory()]
        for thing, state, memory in zip((first, second), states, memories):
            state.add({"mixed": thing})
            state.begin(memory)
        memories[1].receive(memories[0])
        states[1].replaced()
        self.assertEqual(second.held, first.held)
        self.assertIsInstance(second.held["c"], collections.Counter)
        self.assertEqual(json.loads(memories[1].bytes_of(JSON_PART))["schema"], 1)


if __name__ == "__main__":
    unittest.main()
