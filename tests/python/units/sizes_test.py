"""Micro-batches of declared sizes, padded where there are too few records."""
import unittest

import torch

import antdt.torch as adt
from antdt.torch._batch import padded, pieces_of

RECORDS = 50


class Sizes(unittest.TestCase):
    def test_an_order_is_cut_at_the_greatest_size_and_padded_to_the_next(self):
        records = tuple(range(23))
        self.assertEqual(pieces_of(records, (4, 8)), [records[:8], records[8:16], records[16:]])
        self.assertEqual(pieces_of(records, ()), [records])
        self.assertEqual(padded((1, 2, 3), (2, 4, 8)), (1, 2, 3, 3))
        self.assertEqual(padded((1, 2), (2, 4)), (1, 2))
        self.assertEqual(padded((1, 2), ()), (1, 2))

    def train(self, sizes, workers):
        torch.manual_seed(1)
        x = torch.randn(RECORDS, 3, dtype=torch.float64)
        net = torch.nn.Linear(3, 1).double()
        opt = torch.optim.Adam(net.parameters(), lr=0.1)
        job = adt.init(batch_size=12, accumulation=2)
        job.ddp(net)
        job.state(model=net, opt=opt)
        job.declare(sizes=sizes)
        loader = adt.Loader(torch.utils.data.TensorDataset(x), num_workers=workers)
        seen, lengths = [], set()
        try:
            for epoch in job.epochs():
                for step in job.steps(loader):
                    for mb in step:
                        with step.micro(mb):
                            self.assertTrue(torch.equal(mb.x[:len(mb)], x[list(mb.records)]))
                            self.assertEqual(mb.mask.sum().item(), len(mb))
                            loss = (net(mb.x)[:, 0] ** 2 * mb.mask).sum()
                            step.backward(loss, weight=mb.weight)
                        seen += mb.records
                        lengths.add(len(mb.x))
                    step.apply(opt)
        finally:
            job.close()
        self.assertEqual(sorted(seen), list(range(RECORDS)))
        return net.state_dict(), lengths

    def test_it_trains_what_it_trains_without_them(self):
        plain, _ = self.train((), 0)
        for workers in (0, 1):
            found, lengths = self.train([8, 4], workers)
            self.assertEqual(lengths, {4, 8})
            for name, value in plain.items():
                self.assertTrue(torch.allclose(value, found[name], rtol=0, atol=1e-12))

    def test_a_size_below_one_is_refused(self):
        with self.assertRaisesRegex(ValueError, "has 1 record or more"):
            adt.init().declare(sizes=[0, 4])


if __name__ == "__main__":
    unittest.main()
