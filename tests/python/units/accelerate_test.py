"""Calls of an accelerate loop that are supported, and those that are refused."""
import os
import unittest
from unittest import mock

import torch

from antdt.integrations.accelerate import Accelerator


def things():
    net = torch.nn.Linear(1, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.ones(10, 1)
    return net, opt, torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x), batch_size=4)


class Refused(unittest.TestCase):
    def check(self, words, call, error=RuntimeError):
        with self.assertRaisesRegex(error, words):
            call()

    def test_settings_that_the_job_decides(self):
        self.check(r"\[batch\] global", lambda: Accelerator(gradient_accumulation_steps=4), ValueError)
        self.check("torch.autocast in the loop", lambda: Accelerator(mixed_precision="bf16"), ValueError)
        self.check(r"Accelerator\(max_grad_norm=2\)", lambda: Accelerator().clip_grad_norm_(None, 2))

    def test_collectives_of_the_programs_own(self):
        for name in ("sync_gradients", "gather", "gather_for_metrics", "reduce", "wait_for_everyone", "save_state"):
            self.check(f"accelerator.{name}: ", lambda: getattr(Accelerator(), name)())

    def test_objects_that_cannot_be_prepared(self):
        net, opt, loader = things()
        self.check("one optimizer, and this has 0", lambda: Accelerator().prepare(net, loader), TypeError)
        self.check("a int is no model", lambda: Accelerator().prepare(3), TypeError)
        own = torch.utils.data.DataLoader(loader.dataset, sampler=torch.utils.data.SubsetRandomSampler([1]))
        self.check("a sampler of its own", lambda: Accelerator().prepare(net, opt, own), TypeError)
        self.check(r"one loader, to train on.*accelerator.evaluate\(loader, metric\)",
                   lambda: Accelerator().prepare(net, opt, loader, loader), TypeError)
        accelerator = Accelerator()
        accelerator.prepare(net, opt, loader)
        self.check("in one call", lambda: accelerator.prepare(net))

    def test_there_is_one_main_process_before_there_are_ranks(self):
        for worker, is_main in (("w0", True), ("w1", False)):
            with mock.patch.dict(os.environ, ANTDT_SOCKET="/nowhere", ANTDT_WORKER_ID=worker):
                accelerator = Accelerator()
                accelerator.prepare(*things())
                self.assertEqual(accelerator.is_main_process, is_main)
                self.check("known from the first epoch on", lambda: accelerator.process_index)

    def test_a_mean_is_weighed_by_its_records(self):
        net, opt, loader = things()
        with torch.no_grad():
            net.weight.fill_(0.0)
            net.bias.fill_(0.0)
        accelerator = Accelerator()
        net, opt, loader = accelerator.prepare(net, opt, loader)
        sizes = []
        for x, y in loader:
            accelerator.backward(torch.nn.functional.mse_loss(net(x), y))
            sizes.append(len(x))
            opt.step()
        accelerator._job.close()
        self.assertEqual(sizes, [4, 4, 2])
        plain = torch.nn.Linear(1, 1)
        with torch.no_grad():
            plain.weight.fill_(0.0)
            plain.bias.fill_(0.0)
        steps = torch.optim.SGD(plain.parameters(), lr=0.1)
        for n in sizes:
            steps.zero_grad()
            x = torch.ones(n, 1)
            torch.nn.functional.mse_loss(plain(x), x).backward()
            steps.step()
        self.assertTrue(torch.allclose(net.weight, plain.weight, atol=1e-7))


if __name__ == "__main__":
    unittest.main()
