"""Members join, die and go back around the end of an epoch's body, where a schedule is advanced.
All members that train have the same schedule, and members at the same step have the same state."""
import unittest
from unittest import mock

import torch

import antdt.torch as adt
from antdt.torch import _job
from scripted import Scripted, a_step, an_epoch, begin, end

RECORDS = 8


class Run:
    """The program of a member that a script controls."""

    def __init__(self, *script):
        torch.manual_seed(3)
        self.rates, self.bodies = [], []  # the learning rate in each step; the bodies that ended
        net = torch.nn.Linear(1, 1)
        opt = torch.optim.SGD(net.parameters(), lr=1.0)
        sched = torch.optim.lr_scheduler.StepLR(opt, 1, gamma=0.5)
        random = torch.Generator().manual_seed(5)  # its state is a new tensor each time
        member = Scripted(item for part in script for item in (part if isinstance(part, list) else [part]))
        with mock.patch.object(_job, "Member", lambda _: member):
            job = adt.init(epochs=9)
            job.in_job = True
            job.ddp(net)
            job.state(model=net, opt=opt, sched=sched, random=random)
            loader = adt.Loader(torch.utils.data.TensorDataset(torch.ones(RECORDS, 1)))
            try:
                for epoch in job.epochs():
                    for step in job.steps(loader):
                        for mb in step:
                            with step.micro(mb):
                                step.backward(net(mb.x).sum(), weight=mb.weight)
                        self.rates.append(opt.param_groups[0]["lr"])
                        assert step.apply(opt)
                        torch.rand(1, generator=random)
                    self.bodies.append(epoch)
                    sched.step()
            except SystemExit:
                pass
        self.shown = member.shown


class BodiesTest(unittest.TestCase):
    def assert_alike(self, one, other):
        self.assertEqual(set(one), set(other))
        for name in one:
            self.assertEqual(one[name].rstrip(), other[name].rstrip(), name)

    def setUp(self):
        # It heard of the next epoch, and then a member died.
        self.heard = Run(an_epoch(0), begin(1), end(1, False), "joins", begin(1, 2), a_step(1), "later")

    def test_a_schedule_is_advanced_once_an_epoch(self):
        run = Run(an_epoch(0), an_epoch(1), an_epoch(2), begin(3))
        self.assertEqual(run.rates, [1.0, 0.5, 0.25])
        self.assertEqual(run.bodies, [0, 1, 2])

    def test_members_that_heard_of_the_next_epoch_and_others_have_the_same_state(self):
        deaf = Run(an_epoch(0), "joins", begin(1, 2), a_step(1), "later")
        for run in (self.heard, deaf):
            self.assertEqual(run.rates, [1.0, 0.5])
        self.assert_alike(self.heard.shown["joins"], deaf.shown["joins"])
        self.assert_alike(self.heard.shown["later"], deaf.shown["later"])

    def test_a_process_that_joins_between_two_epochs_ends_the_body_that_it_did_not_begin(self):
        newcomer = Run(self.heard.shown["joins"], "healed", begin(1, 2), a_step(1), "later")
        self.assert_alike(newcomer.shown["healed"], self.heard.shown["joins"])
        self.assertEqual((newcomer.bodies, newcomer.rates), ([0], [0.5]))
        self.assert_alike(newcomer.shown["later"], self.heard.shown["later"])

    def test_a_process_that_joins_amid_an_epoch_begins_with_it(self):
        newcomer = Run(self.heard.shown["later"], begin(1, 3), a_step(1), end(1), begin(2, 3), a_step(2))
        self.assertEqual((newcomer.bodies, newcomer.rates), ([1], [0.5, 0.25]))

    def test_a_member_healed_before_its_body_ended_ends_it_once(self):
        behind = Run(begin(0), a_step(0), end(0, False), self.heard.shown["joins"], begin(1, 2), a_step(1),
                     "later")
        self.assertEqual((behind.bodies, behind.rates), ([0], [1.0, 0.5]))
        self.assert_alike(behind.shown["later"], self.heard.shown["later"])

    def test_a_member_that_goes_back_to_an_earlier_epoch_undoes_the_end_of_its_body(self):
        back = Run(an_epoch(0), an_epoch(1), begin(2), a_step(2), end(2, False), self.heard.shown["joins"],
                   "back", begin(1, 3), a_step(1), "later")
        self.assert_alike(back.shown["back"], self.heard.shown["joins"])
        self.assertEqual(back.rates, [1.0, 0.5, 0.25, 0.5])
        self.assert_alike(back.shown["later"], self.heard.shown["later"])

    def test_a_member_that_heard_of_the_next_epoch_and_goes_back_ends_the_body_again(self):
        back = Run(an_epoch(0), begin(1), end(1, False), self.heard.shown["joins"], "back", begin(1, 3),
                   a_step(1), "later")
        self.assert_alike(back.shown["back"], self.heard.shown["joins"])
        self.assertEqual(back.rates, [1.0, 0.5])
        self.assert_alike(back.shown["later"], self.heard.shown["later"])

    def test_a_state_of_an_earlier_release_goes_on_with_the_epoch_that_comes(self):
        old = {name: value.replace(b'"epochs":1,', b"") if name == "python.json" else value
               for name, value in self.heard.shown["later"].items()}
        self.assertNotEqual(old, self.heard.shown["later"])
        run = Run(old, "healed", begin(1, 3), a_step(1), end(1), begin(2, 3), a_step(2))
        self.assertNotIn(b'"epochs"', run.shown["healed"]["python.json"])
        self.assertEqual((run.bodies, run.rates), ([1], [0.5, 0.25]))


if __name__ == "__main__":
    unittest.main()
