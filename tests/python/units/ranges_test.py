"""Data that are read in ranges."""
import unittest

import torch

import antdt.torch as adt
from antdt.torch._ranges import ranges_of

RECORDS = 100


class Ranges(unittest.TestCase):
    def test_consecutive_numbers_are_one_range(self):
        for records, wanted in (((), []), ((5,), [(5, 6)]), ((5, 6, 7, 9, 8, 2, 3), [
                (5, 8), (9, 10), (8, 9), (2, 4)])):
            self.assertEqual(list(ranges_of(records)), wanted)

    def train(self, loader, shuffle=False):
        net = torch.nn.Linear(1, 1)
        job = adt.init(batch_size=16, shuffle=shuffle)
        job.ddp(net)
        opt = torch.optim.SGD(net.parameters(), lr=0.0)
        job.state(model=net, opt=opt)
        seen = []
        try:
            for epoch in job.epochs():
                for step in job.steps(loader):
                    for mb in step:
                        with step.micro(mb):
                            self.assertEqual(mb.data.flatten().tolist(), list(map(float, mb.records)))
                            step.backward(net(mb.data).sum(), weight=mb.weight)
                        seen += mb.records
                    step.apply(opt)
        finally:
            job.close()
        return seen

    @staticmethod
    def read(first, end):
        for i in range(first, end):
            yield torch.tensor([float(i)])

    def test_each_micro_batch_in_the_datas_order_is_one_call(self):
        calls = []

        def read(first, end):
            calls.append((first, end))
            return self.read(first, end)
        self.assertEqual(self.train(adt.shards(read, RECORDS)), list(range(RECORDS)))
        self.assertEqual(calls, [(i, min(i + 16, RECORDS)) for i in range(0, RECORDS, 16)])

    def test_shuffled_and_by_other_processes_it_is_the_same_records(self):
        for workers in (0, 2):
            seen = self.train(adt.shards(self.read, RECORDS, num_workers=workers), shuffle=True)
            self.assertEqual(sorted(seen), list(range(RECORDS)))
            self.assertNotEqual(seen, list(range(RECORDS)))

    def test_too_few_too_many_and_broken_samples_are_reported(self):
        def broken(first, end):
            raise OSError("no such file")
        for read, words in ((lambda first, end: [], "gave 0 samples.*one for each of the 16"),
                            (lambda first, end: list(self.read(first, end + 5)), "gave more samples"),
                            (broken, "records 0 to 15 cannot be read: OSError: no such file")):
            with self.assertRaisesRegex(RuntimeError, words):
                self.train(adt.shards(read, RECORDS))


if __name__ == "__main__":
    unittest.main()
