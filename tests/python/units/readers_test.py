"""The processes of a loader: requests and answers that no connection's buffer holds, what they draw, ends."""
import os
import random
import signal
import types
import unittest

import numpy
import torch
import antdt.torch as adt
from antdt._member import Order
from antdt.torch._readers import Readers


def numbers(records):
    return torch.tensor(records, dtype=torch.int64)


class LargeMicroBatches(unittest.TestCase):
    def setUp(self):
        def stuck(*_):
            raise TimeoutError("the loader and its processes wait for each other")
        before = signal.signal(signal.SIGALRM, stuck)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.alarm(60)
        self.addCleanup(signal.alarm, 0)

    def readers(self, count):
        readers = Readers(count, numbers, "a seed")
        self.addCleanup(readers.close)
        return readers

    def test_many_are_asked_for_before_the_first_is_taken(self):
        readers = self.readers(2)
        batches = [tuple(range(first, first + 60_000)) for first in range(70_000, 70_008)]
        tickets = [readers.ask(batch) for batch in batches]
        for ticket, batch in zip(tickets, batches):
            self.assertEqual(readers.take(ticket).tolist(), list(batch))

    def test_what_is_forgotten_is_in_nobodys_way(self):
        readers = self.readers(2)
        batches = [tuple(range(first, first + 60_000)) for first in range(70_000, 70_008)]
        tickets = [readers.ask(batch) for batch in batches]
        for ticket in tickets[:5]:
            readers.forget(ticket)
        self.assertEqual(readers.take(tickets[5])[0], 70_005)
        self.assertEqual(readers.take(tickets[7])[0], 70_007)

    def test_small_requests_are_with_a_process_before_it_has_answered(self):
        readers = self.readers(1)
        for _ in range(100):
            readers.ask((1, 2, 3))
        worker, = readers._workers
        self.assertEqual(len(worker._sent), 100)
        self.assertEqual(readers.take(99).tolist(), [1, 2, 3])


class Drawn:
    """A dataset of random numbers."""

    def __len__(self):
        return 2

    def __getitem__(self, record):
        return torch.rand(1).item(), random.random(), numpy.random.rand()


class RandomNumbers(unittest.TestCase):
    def drawn(self, seed=0, worker="w0", attempt=1, phase=1):
        """What the two processes of a member draw by torch, random and numpy."""
        torch.manual_seed(seed)
        random.seed(seed)
        numpy.random.seed(seed)
        before = torch.get_rng_state()
        loader = adt.Loader(Drawn(), collate_fn=lambda samples: samples[0], num_workers=2)
        loader.begin(types.SimpleNamespace(worker=worker, attempt=attempt), Order(0, generation=1, phase=phase))
        self.addCleanup(loader.close)
        tickets = [loader._readers.ask((record,)) for record in range(2)]
        numbers = [number for ticket in tickets for number in loader._readers.take(ticket)]
        self.assertTrue(torch.equal(torch.get_rng_state(), before), "the program's generator has gone on")
        return numbers

    def test_each_process_draws_its_own(self):
        self.assertEqual(len(set(self.drawn())), 6)

    def test_members_attempts_and_phases_with_one_manual_seed_draw_different_ones(self):
        drawn = self.drawn() + self.drawn(worker="w1") + self.drawn(attempt=2) + self.drawn(phase=3)
        self.assertEqual(len(set(drawn)), 24)

    def test_they_follow_from_the_manual_seed(self):
        self.assertEqual(self.drawn(), self.drawn())
        self.assertFalse(set(self.drawn()) & set(self.drawn(seed=1)))


class Ends(unittest.TestCase):
    def check(self, end, words):
        readers = Readers(1, lambda records: end() if 77 in records else records, "a seed")
        self.addCleanup(readers.close)
        tickets = [readers.ask(records) for records in ((1, 2), tuple(range(70, 90)))]
        self.assertEqual(readers.take(tickets[0]), (1, 2))
        with self.assertRaisesRegex(RuntimeError, words):
            readers.take(tickets[1])

    def test_the_signal_and_the_records_are_named(self):
        self.check(lambda: os.kill(os.getpid(), signal.SIGSEGV),
                   r"exit code -11, by SIGSEGV, while it had 20 records in hand \(70, 71, .*77, …\)\. With "
                   r"num_workers=0 the program itself")

    def test_a_kill_may_be_for_want_of_memory(self):
        self.check(lambda: os.kill(os.getpid(), signal.SIGKILL), r"exit code -9, by SIGKILL.*memory runs out")

    def test_an_exit_is_by_no_signal(self):
        self.check(lambda: os._exit(3), r"exit code 3 while it had 20 records")


if __name__ == "__main__":
    unittest.main()
