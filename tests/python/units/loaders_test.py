"""The processes of a job's loaders: how many there are while the job goes on."""
import multiprocessing
import os
import unittest
from unittest import mock

import torch

import antdt.torch as adt
from antdt import _abi
from antdt._member import Order
from antdt.integrations.accelerate import Accelerator
from antdt.torch import _job
from scripted import Scripted, an_epoch, an_evaluation

EPOCHS = 3


class ProcessesOfLoaders(unittest.TestCase):
    def setUp(self):
        script = [order for epoch in range(EPOCHS) for order in an_epoch(epoch) + an_evaluation(epoch)]
        member = Scripted(script + [Order(_abi.LEAVE)])
        for patch in (mock.patch.object(_job, "Member", lambda _: member),
                      mock.patch.dict(os.environ, ANTDT_SOCKET="/nowhere")):
            patch.start()
            self.addCleanup(patch.stop)
        self.data = torch.utils.data.TensorDataset(torch.ones(8, 1))
        self.net = torch.nn.Linear(1, 1)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.there = []  # in each evaluation: the processes

    def metric(self, mb):
        self.there.append({child.pid for child in multiprocessing.active_children()})
        return adt.Sums(loss=0.0)

    def check(self, *counts):
        self.assertEqual([len(there) for there in self.there], list(counts))
        self.assertEqual(multiprocessing.active_children(), [], "after the job")

    def train(self, to_train, to_evaluate):
        """Loaders for each epoch."""
        job = adt.init()
        job.ddp(self.net)
        job.state(model=self.net, opt=self.opt)
        for _ in job.epochs():
            for step in job.steps(to_train()):
                for mb in step:
                    with step.micro(mb):
                        step.backward(self.net(mb.data[0]).sum(), weight=mb.weight)
                step.apply(self.opt)
            job.evaluate(to_evaluate(), self.metric)

    def test_those_of_a_loader_end_when_another_takes_its_place(self):
        self.train(lambda: adt.Loader(self.data, num_workers=1), lambda: adt.Loader(self.data, num_workers=2))
        self.check(3, 3, 3)

    def test_a_loader_that_evaluated_and_trains_on_keeps_its_own(self):
        both, other = adt.Loader(self.data, num_workers=1), adt.Loader(self.data, num_workers=2)
        evaluating = iter([both, other, other])
        self.train(lambda: both, lambda: next(evaluating))
        self.check(1, 3, 3)
        self.assertLess(self.there[0], self.there[1])

    def test_an_accelerator_evaluates_with_the_same_ones_each_time(self):
        accelerator = Accelerator()
        net, opt, loader = accelerator.prepare(
            self.net, self.opt, torch.utils.data.DataLoader(self.data, batch_size=2, num_workers=1))
        test = torch.utils.data.DataLoader(self.data, batch_size=2, num_workers=2)
        for _ in range(EPOCHS):
            for x, in loader:
                accelerator.backward(net(x).mean())
                opt.step()
            accelerator.evaluate(test, self.metric)
        accelerator.end_training()
        self.check(3, 3, 3)
        self.assertEqual(self.there, self.there[:1] * EPOCHS)


if __name__ == "__main__":
    unittest.main()
