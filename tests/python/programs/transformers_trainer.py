"""A small language model, trained by a Trainer of transformers (integrations_test.py). Usage:
transformers_trainer.py ours|theirs OUT"""
import sys

import torch
import transformers
from torch.utils.data import SequentialSampler

RECORDS, EPOCHS, BATCH, WORDS = 600, 3, 25, 17


class Texts(torch.utils.data.Dataset):
    """Of unlike numbers of words; the others are padding that is no label."""

    def __len__(self):
        return RECORDS

    def __getitem__(self, i):
        words = (torch.arange(8) * (i % 5 + 1) + i) % WORDS
        return {"input_ids": words, "labels": torch.where(torch.arange(8) < 3 + i % 6, words, -100)}


class InOrder(transformers.Trainer):
    def _get_train_sampler(self, *_):
        return SequentialSampler(self.train_dataset)


transformers.set_seed(1)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
    vocab_size=WORDS, n_positions=8, n_embd=16, n_layer=1, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0,
    attn_pdrop=0.0, bos_token_id=0, eos_token_id=0))
trainer = InOrder(model=model, train_dataset=Texts(), args=transformers.TrainingArguments(
    output_dir=sys.argv[2] + "-trainer", num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH,
    max_steps=EPOCHS * RECORDS // BATCH, learning_rate=1e-3, max_grad_norm=0.5, save_strategy="no",
    report_to=[], use_cpu=True, disable_tqdm=True))
if sys.argv[1] == "ours":
    from antdt.integrations.transformers import train
    train(trainer)
else:
    trainer.train()
if sys.argv[2] != "-":
    torch.save(model.state_dict(), sys.argv[2])
