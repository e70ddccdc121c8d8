"""An exponential moving average of the model, and a GradScaler, as parts of the state."""
import os
import unittest
from unittest import mock

import torch

import antdt.torch as adt
from antdt import _abi
from antdt._member import Order
from antdt.torch import _job
from antdt.torch._state import State
from memory import Memory
from scripted import Scripted, a_step, begin, end

RECORDS = 64


def data():
    torch.manual_seed(1)
    x = torch.randn(RECORDS, 3)
    return torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))


class Averages(unittest.TestCase):
    def make(self, seed):
        torch.manual_seed(seed)
        net = torch.nn.Linear(3, 1)
        ema = torch.optim.swa_utils.AveragedModel(
            net, avg_fn=lambda average, now, count: 0.9 * average + 0.1 * now)
        state, memory = State(), Memory()
        state.add({"model": net, "ema": ema})
        state.begin(memory)
        return net, ema, state, memory

    def test_a_newcomer_gets_the_average_and_goes_on_with_it_alike(self):
        def train(net, ema):
            with torch.no_grad():
                for p in net.parameters():
                    p += 1
            ema.update_parameters(net)
        source, newcomer = self.make(1), self.make(2)
        train(*source[:2])
        train(*source[:2])
        for state, memory in (source[2:], newcomer[2:]):
            state.bring_up_to_date(memory)
        newcomer[3].receive(source[3])
        newcomer[2].replaced()
        for net, ema, state, memory in (source, newcomer):
            train(net, ema)
            state.bring_up_to_date(memory)
        self.assertEqual(source[3].all_bytes(), newcomer[3].all_bytes())
        self.assertEqual(int(newcomer[1].n_averaged), 3)


@unittest.skipUnless(hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"),
                     "this PyTorch has no GradScaler for the CPU")
class Scaler(unittest.TestCase):
    def train(self, scaled, overflow_at=None):
        torch.manual_seed(2)
        net = torch.nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3) if scaled else None
        job = adt.init(batch_size=8, accumulation=2, shuffle=False)
        job.ddp(net)
        job.state(model=net, opt=opt, **({"scaler": scaler} if scaled else {}))
        scales, n = [], 0
        try:
            for epoch in job.epochs():
                for step in job.steps(adt.Loader(data())):
                    for mb in step:
                        with step.micro(mb):
                            loss = torch.nn.functional.mse_loss(net(mb.x), mb.y, reduction="sum")
                            if n == overflow_at:
                                loss = loss * float("inf")
                            step.backward(loss, weight=mb.weight, scaler=scaler)
                    step.apply(opt, clip=1.0, scaler=scaler)
                    n += 1
                    scales.append(scaler.get_scale() if scaled else 1.0)
        finally:
            job.close()
        return net.state_dict(), scales

    def test_it_changes_nothing_but_the_scale(self):
        plain, _ = self.train(False)
        scaled, scales = self.train(True)
        for name, value in plain.items():
            self.assertTrue(torch.allclose(value, scaled[name], rtol=0, atol=1e-6), name)
        self.assertEqual(scales, [1024, 1024, 2048, 2048])

    def test_a_step_that_overflows_is_passed_over_and_halves_the_scale(self):
        state, scales = self.train(True, overflow_at=1)
        self.assertEqual(scales, [1024, 512, 512, 512])
        for value in state.values():
            self.assertTrue(value.isfinite().all())

    def scale_of_member(self, first_step, skips=False):
        """The scaler's state and scale of a member that has this first step, and then one like the others."""
        member = Scripted([begin(0), *first_step, *a_step(0), end(0), Order(_abi.LEAVE)])
        net = torch.nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
        with mock.patch.object(_job, "Member", lambda _: member), \
                mock.patch.dict(os.environ, ANTDT_SOCKET="/nowhere"):
            job = adt.init()
            job.ddp(net)
            job.state(model=net, opt=opt, scaler=scaler)
            for _ in job.epochs():
                for step in job.steps(adt.Loader(data())):
                    for mb in step:
                        with step.micro(mb):
                            if skips:
                                step.skip(mb, "of no use")
                            else:
                                step.backward(net(mb.x).sum(), weight=mb.weight, scaler=scaler)
                    self.assertTrue(step.apply(opt, clip=1.0, scaler=scaler))
                    skips = False
        return scaler.state_dict()

    def test_a_member_without_a_loss_in_its_first_step_has_the_scale_of_the_others(self):
        computes = self.scale_of_member(a_step(0))
        self.assertEqual((computes["scale"], computes["_growth_tracker"]), (2048, 0))
        without_records = [order for order in a_step(0) if order.kind != _abi.COMPUTE]
        self.assertEqual(self.scale_of_member(without_records), computes)
        self.assertEqual(self.scale_of_member(a_step(0), skips=True), computes)

    def test_a_newcomer_gets_the_scale(self):
        both = []
        for seed in (1, 2):
            state, memory = State(), Memory()
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** seed)
            state.add({"scaler": scaler})
            state.begin(memory)
            both.append((scaler, state, memory))
        both[1][2].receive(both[0][2])
        both[1][1].replaced()
        self.assertEqual(both[1][0].get_scale(), 2.0)


if __name__ == "__main__":
    unittest.main()
