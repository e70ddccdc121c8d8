"""Where the loops of other frameworks compute, and in which precision: nothing here needs a GPU."""
import collections
import contextlib
import os
import types
import unittest
from unittest import mock

import torch
from torch.utils.data import DataLoader, SequentialSampler, TensorDataset

import antdt.torch as adt
from antdt import _abi
from antdt._member import Order
from antdt.integrations import accelerate, lightning, transformers
from antdt.integrations._devices import class_of, device_of, moved, place
from antdt.integrations.accelerate import Accelerator
from antdt.torch import _job
from scripted import Scripted, an_epoch, an_evaluation

META = torch.device("meta")
DATA = TensorDataset(torch.ones(2, 4))


class Batch:
    """Says where it is sent, and stays."""

    def __init__(self, samples):
        self.x, self.sent = torch.stack([x for x, in samples]), []

    def to(self, device):
        self.sent.append(torch.device(device))
        return self


class Net(torch.nn.Linear):
    """As a LightningModule, too."""

    def __init__(self):
        super().__init__(4, 1)
        self.sent, self.batches = [], []

    def to(self, device):
        self.sent.append(torch.device(device))
        return self

    def training_step(self, batch, _):
        self.batches.append(batch)
        return self(batch.x).mean()

    def configure_optimizers(self):
        assert self.sent, "the optimizer is that of the module where it was moved"
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Moved(unittest.TestCase):
    """A model and its batches in a job that trains an epoch and evaluates."""

    def setUp(self):
        member = Scripted([*an_epoch(0), *an_evaluation(0), Order(_abi.LEAVE)])
        self.options = []

        def opened(options):
            self.options.append(options)
            return member
        for patch in (mock.patch.object(_job, "Member", opened),
                      mock.patch.dict(os.environ, ANTDT_SOCKET="/nowhere")):
            patch.start()
            self.addCleanup(patch.stop)
        self.net, self.evaluated = Net(), []
        self.loader = DataLoader(DATA, batch_size=2, collate_fn=Batch)

    def metric(self, mb):
        self.evaluated.append(mb.data)
        return adt.Sums(loss=0.0)

    def check(self, device=META):
        self.assertEqual(self.net.sent, [device])
        self.assertEqual([batch.sent for batch in self.net.batches], [[device]])
        self.assertEqual([batch.sent for batch in self.evaluated], [[device]])
        self.assertEqual([options.device for options in self.options], ["meta" if device == META else None])

    def test_an_accelerator_moves_model_and_batches(self):
        accelerator = Accelerator(device="meta")
        self.assertEqual(accelerator.device, META)
        opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        net, opt, loader = accelerator.prepare(self.net, opt, self.loader)
        for batch in loader:
            accelerator.backward(net.training_step(batch, 0))
            opt.step()
        accelerator.evaluate(DataLoader(DATA, batch_size=2, collate_fn=Batch), self.metric)
        accelerator.end_training()
        self.check()

    def test_fit_moves_module_and_batches(self):
        lightning.fit(self.net, self.loader, validation=self.loader, metric=self.metric, device="meta")
        self.check()

    def test_fit_has_batches_moved_by_the_module_that_can(self):
        went = []
        self.net.transfer_batch_to_device = lambda batch, *where: went.append(where) or batch.to(where[0])
        lightning.fit(self.net, self.loader, validation=self.loader, metric=self.metric, device="meta")
        self.check()
        self.assertEqual(went, [(META, 0)] * 2)

    def test_without_a_gpu_it_is_the_processor(self):
        with mock.patch.object(torch.cuda, "is_available", return_value=False):
            lightning.fit(self.net, self.loader, validation=self.loader, metric=self.metric)
        self.check(torch.device("cpu"))


class Choice(unittest.TestCase):
    def test_workers_take_the_gpus_that_they_see_in_turn(self):
        with mock.patch.multiple(torch.cuda, is_available=lambda: True, device_count=lambda: 4,
                                 get_device_name=lambda device: f"H{device.index}00",
                                 set_device=mock.DEFAULT) as cuda:
            for worker, index in (("w0", 0), ("w5", 1)):
                with mock.patch.dict(os.environ, ANTDT_WORKER_ID=worker):
                    device = Accelerator().device
                self.assertEqual(device, torch.device("cuda", index))
                cuda["set_device"].assert_called_with(device)
            self.assertEqual(class_of(device), "cuda:H100")
            self.assertEqual(Accelerator(device="cpu").device, torch.device("cpu"))

    def test_a_module_that_the_program_has_moved_stays_there(self):
        self.assertEqual(device_of(None, torch.nn.Linear(1, 1, device="meta")), META)

    def test_a_module_on_several_devices_stays_there(self):
        both = torch.nn.ModuleList([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1, device="meta")])
        self.assertFalse(place(both, META))
        self.assertEqual(both[0].weight.device.type, "cpu")

    def test_the_state_that_an_optimizer_has_is_moved_with_the_parameters(self):
        net = torch.nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        net(torch.ones(2, 4)).sum().backward()
        opt.step()
        with mock.patch.object(accelerate, "place", return_value=True), \
                mock.patch.object(opt, "load_state_dict", wraps=opt.load_state_dict) as loaded:
            Accelerator(device="cpu").prepare(net, opt, DataLoader(DATA, batch_size=2))
        loaded.assert_called_once()  # PyTorch puts state where its parameter is

    def test_what_is_in_a_batch_is_moved(self):
        pair = collections.namedtuple("pair", "a b")
        x = torch.ones(1)
        deep = collections.defaultdict(list, a=[x, "text"], b=pair(x, (x, 3)))
        there = moved(deep, META)
        self.assertEqual((type(there), type(there["b"])), (collections.defaultdict, pair))
        self.assertEqual([t.device for t in (there["a"][0], there["b"].a, there["b"].b[0])], [META] * 3)
        self.assertEqual((there["a"][1], there["b"].b[1], deep["a"][0].device.type), ("text", 3, "cpu"))


class Trainer:
    """What antdt.integrations.transformers asks of one."""

    def __init__(self, **args):
        given = {"num_train_epochs": 1, "per_device_train_batch_size": 2, "seed": 0, "max_steps": 1,
                 "gradient_accumulation_steps": 1, "dataloader_num_workers": 0, "max_grad_norm": 0,
                 "device": torch.device("cpu")}
        self.args = types.SimpleNamespace(**{**given, **args})
        self.model, self.train_dataset = torch.nn.Linear(4, 1), DATA
        self.data_collator = lambda samples: {"x": torch.stack([x for x, in samples])}
        self.computed, self.prepared, self.moved = [], [], []

    compute_loss_context_manager = contextlib.nullcontext

    def _get_train_sampler(self):
        return SequentialSampler(self.train_dataset)

    def create_optimizer_and_scheduler(self, _):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.lr_scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.9)

    def _move_model_to_device(self, model, device):
        self.moved.append((model, device))

    def _prepare_inputs(self, inputs):
        self.prepared.append(inputs)
        return inputs

    def _get_num_items_in_batch(self, *_):
        return None

    def compute_loss(self, model, inputs):
        found = model(inputs["x"])
        found.register_hook(lambda _: self.computed.append(torch.ones(1, 1).matmul(torch.ones(1, 1)).dtype))
        self.computed.append(found.dtype)
        return found.float().mean()


class OfATrainer(unittest.TestCase):
    def train(self, **args):
        trainer = Trainer(**args)
        transformers.train(trainer)
        return trainer

    def test_bf16_is_the_precision_of_forward_passes_alone(self):
        self.assertEqual(self.train(bf16=True).computed, [torch.bfloat16, torch.float32])
        self.assertEqual(self.train(bf16=False).computed, [torch.float32, torch.float32])

    def test_batches_of_an_evaluation_are_prepared_as_those_of_the_training(self):
        trainer = Trainer()
        transformers.train(trainer, validation=DATA, metric=lambda mb: adt.Sums(loss=0.0))
        self.assertEqual(len(trainer.prepared), 2)

    def test_activations_are_computed_again_as_the_trainer_would_have_it(self):
        for name, args, wanted in (
                ("gradient_checkpointing", {"gradient_checkpointing": True}, mock.call()),
                ("gradient_checkpointing",
                 {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": False}},
                 mock.call(gradient_checkpointing_kwargs={"use_reentrant": False})),
                ("activation_checkpointing",
                 {"activation_checkpointing": True, "gradient_checkpointing": True,
                  "activation_checkpointing_kwargs": {"every_n_layers": 2, "use_reentrant": False}},
                 mock.call(every_n_layers=2, activation_checkpointing_kwargs={"use_reentrant": False}))):
            trainer = Trainer(**args)
            trainer.model.__dict__[f"{name}_enable"] = enable = mock.Mock()
            transformers.train(trainer)
            self.assertEqual(enable.mock_calls, [wanted])
        with self.assertRaisesRegex(ValueError, "Linear has no gradient_checkpointing_enable"):
            self.train(gradient_checkpointing=True)

    def test_a_model_that_the_trainer_left_to_its_loop_is_moved(self):
        self.assertEqual(self.train().moved, [])
        trainer = self.train(bf16_full_eval=True)
        self.assertEqual(trainer.moved, [(trainer.model, torch.device("cpu"))])

    def test_a_loss_is_that_of_one_of_the_gpus_that_are_seen(self):
        class Args(types.SimpleNamespace):
            n_gpu = property(lambda self: self._n_gpu)
        trainer = Trainer()
        trainer.args = Args(**trainer.args.__dict__, _n_gpu=4)
        transformers.train(trainer)
        self.assertEqual(trainer.args.n_gpu, 1)

    def test_noise_that_would_be_left_out_is_refused(self):
        with self.assertRaisesRegex(ValueError, "neftune_noise_alpha=…. cannot hold in a job"):
            self.train(neftune_noise_alpha=5.0)


if __name__ == "__main__":
    unittest.main()
