"""Tests how gradients and buffers of a module are passed on to be summed."""
import threading
import unittest

import torch

from antdt.torch._buffers import Buffers
from antdt.torch._gradients import Gradients
from memory import Reducing


def net(dtype=torch.float64):
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 300), torch.nn.Tanh(),
                               torch.nn.Linear(300, 300), torch.nn.Tanh(),
                               torch.nn.Linear(300, 2)).to(dtype)


def loss_of(module, dtype=torch.float64):
    x = torch.linspace(-1, 1, 12, dtype=dtype).view(3, 4)
    return module(x).pow(2).sum()


class Turn:
    """A lock that tells when somebody has to wait for it."""

    def __init__(self, waits):
        self.lock, self.waits = threading.Lock(), waits

    def __enter__(self):
        if not self.lock.acquire(blocking=False):
            self.waits.set()
            self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


class GradientsOfAModule(unittest.TestCase):
    def test_a_bucket_is_handed_over_before_the_backward_ends(self):
        module, member, order = net(), Reducing(), []
        gradients = Gradients(module, 100_000, True)
        # The first layer's gradient comes last.
        module[0].weight.register_hook(lambda g: order.append(list(member.handed)))
        gradients.arm(member, 2)
        loss_of(module).backward()
        self.assertEqual(len(order[0]), 1, "the last layers' bucket")
        gradients.disarm()
        gradients.finish(member, 2)
        self.assertEqual(sum(member.handed), sum(p.numel() for p in module.parameters()))

    def test_buckets_are_handed_over_in_one_order_whatever_was_computed(self):
        handed = []
        for computes in (True, False):
            module, member = net(), Reducing()
            gradients = Gradients(module, 100_000, True)
            if computes:
                gradients.arm(member, 2)
                loss_of(module).backward()
            gradients.finish(member, 2)
            handed.append(member.handed)
        self.assertEqual(handed[0], handed[1])

    def test_buckets_are_handed_over_in_order_though_two_devices_compute_them(self):
        """Autograd's thread of the second device has its bucket while the first one's hands over its own."""
        module = torch.nn.ModuleList([torch.nn.Linear(1, 8, bias=False), torch.nn.Linear(1, 16, bias=False)])
        gradients, moved = Gradients(module, 16, True), threading.Event()
        gradients._turn = Turn(moved)

        def second_device():
            module[0].weight.sum().backward()
            moved.set()
        other = threading.Thread(target=second_device)

        class First(Reducing):
            def reduce(self, address, count, dtype):
                if count == 16:
                    other.start()
                    assert moved.wait(60)
                return super().reduce(address, count, dtype)
        member = First()
        gradients.arm(member, 2)
        module[1].weight.sum().backward()
        other.join()
        self.assertEqual(member.handed, [16, 8])

    def test_accumulated_gradients_are_those_of_torch(self):
        for dtype in (torch.float64, torch.float32):
            with self.subTest(dtype):
                module, plain, member = net(dtype), net(dtype), Reducing()
                gradients = Gradients(module, 10_000, True)
                for last in (False, False, True):
                    if last:
                        gradients.arm(member, 2)
                    loss_of(module, dtype).backward()
                    loss_of(plain, dtype).backward()
                gradients.disarm()
                gradients.finish(member, 2)
                gradients.divide(5.0)
                for ours, theirs in zip(module.parameters(), plain.parameters()):
                    self.assertTrue(torch.equal(ours.grad, theirs.grad / 5.0))

    def test_a_device_and_the_host_exchange_gradients_only_if_there_are_others(self):
        for members in (1, 2):
            with self.subTest(members):
                module, plain, member = net(), net(), Reducing()
                gradients = Gradients(module, 10_000, True)
                for bucket in gradients._buckets:  # as if the sums were in a device's memory
                    bucket.host = torch.full((bucket.count,), 9.0, dtype=bucket.dtype)
                gradients.arm(member, members)
                loss_of(module).backward()
                loss_of(plain).backward()
                gradients.finish(member, members)
                gradients.divide(1.0)
                for ours, theirs in zip(module.parameters(), plain.parameters()):
                    self.assertTrue(torch.equal(ours.grad, theirs.grad))
                copied = [not bool((bucket.host == 9.0).all()) for bucket in gradients._buckets]
                self.assertEqual(set(copied), {members > 1})

    def test_gradients_that_the_program_set_to_none_are_not_lost(self):
        module, plain, member = net(), net(), Reducing()
        gradients = Gradients(module, 10_000, True)
        torch.optim.SGD(module.parameters(), lr=1).zero_grad(set_to_none=True)
        for _ in range(2):
            loss_of(module).backward()
            loss_of(plain).backward()
        gradients.finish(member, 2)
        gradients.divide(1.0)
        for ours, theirs in zip(module.parameters(), plain.parameters()):
            self.assertTrue(torch.equal(ours.grad, theirs.grad))

    def test_half_precision_is_summed_in_single(self):
        module, member = torch.nn.Linear(2, 1, bias=False).to(torch.bfloat16), Reducing(70000.0)
        gradients = Gradients(module, 1 << 20, False)
        for _ in range(300):  # 1/256 added to 1 is nothing in bfloat16
            module.weight.sum().backward()
        gradients.finish(member, 2)
        gradients.divide(2.0)
        self.assertEqual(module.weight.grad.dtype, torch.bfloat16)
        self.assertTrue(torch.equal(module.weight.grad,
                                    torch.full((1, 2), 35150.0).to(torch.bfloat16)))

    def test_an_unused_parameter_has_a_gradient_of_zero(self):
        module, member = net(), Reducing()
        gradients = Gradients(module, 1 << 20, True)
        gradients.arm(member, 2)
        module[4].bias.sum().backward()
        gradients.disarm()
        gradients.finish(member, 2)
        gradients.divide(1.0)
        self.assertEqual(module[0].weight.grad.abs().sum(), 0)
        self.assertEqual(module[4].bias.grad.tolist(), [1, 1])

    def test_a_second_backward_after_the_buckets_went_is_refused_in_words(self):
        gradients, member = Gradients(module := net(), 1 << 20, True), Reducing()
        gradients.arm(member, 2)
        loss_of(module).backward()
        with self.assertRaisesRegex(RuntimeError, "overlap=False"):
            loss_of(module).backward()

    def test_after_an_abort_the_next_step_begins_from_zero_in_the_same_memory(self):
        module, plain, member = net(), net(), Reducing()
        gradients = Gradients(module, 100_000, True)
        where = [p.grad.data_ptr() for p in module.parameters()]
        for _ in range(100):
            gradients.arm(member, 2)
            loss_of(module).backward()
            gradients.clear()
        self.assertEqual(where, [p.grad.data_ptr() for p in module.parameters()])
        loss_of(module).backward()
        loss_of(plain).backward()
        for ours, theirs in zip(module.parameters(), plain.parameters()):
            self.assertTrue(torch.equal(ours.grad, theirs.grad))


def reduce(all_buffers, weights):
    member = Reducing()
    for buffers, weight in zip(all_buffers, weights):
        buffers.finish(member, weight)
    total = sum(b._sums for b in all_buffers)
    for buffers in all_buffers:
        buffers._sums = total.clone()
        buffers.apply()


class BuffersOfAModule(unittest.TestCase):
    def norms(self, count):
        return [torch.nn.BatchNorm1d(2).double() for _ in range(count)]

    def test_statistics_are_averaged_by_weight_and_equal_afterwards(self):
        modules = self.norms(3)
        buffers = [Buffers(m) for m in modules]
        modules[0](torch.full((4, 2), 10.0, dtype=torch.float64))
        modules[1](torch.full((2, 2), 40.0, dtype=torch.float64))
        reduce(buffers, [4.0, 2.0, 0.0])
        # 0.1 of what each saw: (4 * 1 + 2 * 4) / 6
        for module in modules:
            self.assertTrue(torch.allclose(module.running_mean, torch.tensor([2.0, 2.0]).double()))
            self.assertEqual(module.num_batches_tracked, 1)
            for name, value in module.state_dict().items():
                self.assertTrue(torch.equal(value, modules[0].state_dict()[name]))

    def test_an_unchanged_buffer_stays_to_the_bit(self):
        modules = self.norms(2)
        for module in modules:
            module.running_mean.fill_(0.1)
        reduce([Buffers(m) for m in modules], [3.0, 7.0])
        self.assertTrue(torch.equal(modules[0].running_mean, torch.full((2,), 0.1, dtype=torch.float64)))

    def test_a_discarded_step_leaves_them_as_they_were(self):
        module = self.norms(1)[0]
        before = {k: v.clone() for k, v in module.state_dict().items()}
        buffers = Buffers(module)
        module(torch.randn(8, 2).double())
        buffers.discard()
        for name, value in module.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)


class Reassigning(torch.nn.Module):
    """Its forward puts other tensors in the place of its buffers: a moving average, the newest batch, and
    the average as it was before."""

    def __init__(self):
        super().__init__()
        for name in ("mean", "newest", "before"):
            self.register_buffer(name, torch.zeros(2, dtype=torch.float64))

    def forward(self, x):
        self.before = self.mean
        self.mean = 0.9 * self.mean + 0.1 * x
        self.newest = x


class BuffersThatAForwardReplaces(unittest.TestCase):
    def test_they_are_averaged_by_weight_and_equal_afterwards(self):
        modules = [Reassigning() for _ in range(3)]
        buffers = [Buffers(m) for m in modules]
        for step in (1, 2):
            batch = torch.full((2,), 10.0, dtype=torch.float64)
            modules[0](batch)
            modules[1](torch.full((2,), 40.0, dtype=torch.float64))
            reduce(buffers, [4.0, 2.0, 0.0])
            for b in buffers:
                b.step_begins()
            self.assertTrue(torch.equal(batch, torch.full((2,), 10.0).double()), "the batch was written to")
            for module in modules:
                # 0.1 of what each saw: (4 * 1 + 2 * 4) / 6
                self.assertTrue(torch.allclose(module.mean, torch.full((2,), 2.0 + 1.8 * (step - 1)).double()))
                self.assertTrue(torch.allclose(module.newest, torch.full((2,), 20.0).double()))
                self.assertTrue(torch.allclose(module.before, torch.full((2,), 2.0 * (step - 1)).double()))
                for name, value in module.state_dict().items():
                    self.assertTrue(torch.equal(value, modules[0].state_dict()[name]), name)

    def test_a_discarded_step_leaves_them_as_they_were(self):
        module = Reassigning()
        buffers = Buffers(module)
        batch = torch.ones(2, dtype=torch.float64)
        module(batch)
        buffers.discard()
        for name, value in module.state_dict().items():
            self.assertTrue(torch.equal(value, torch.zeros(2).double()), name)
        self.assertTrue(torch.equal(batch, torch.ones(2).double()), "the batch was written to")

    def test_one_of_another_shape_is_refused_by_name(self):
        net = torch.nn.Sequential(Reassigning())
        buffers = Buffers(net)
        net(torch.ones(3, 2, dtype=torch.float64))
        with self.assertRaisesRegex(TypeError, r"the buffer 0.mean had shape \(2,\) and torch.float64 .* put a tensor "
                                               r"of shape \(3, 2\)"):
            buffers.finish(Reducing(), 1.0)
        buffers.discard()
        self.assertTrue(torch.equal(net[0].mean, torch.zeros(2).double()))


if __name__ == "__main__":
    unittest.main()
