#!/usr/bin/python3
"""A small ResNet with BatchNorm on MNIST, or a character transformer on tinyshakespeare, as a worker of a
job or alone. Prints the last evaluation as a JSON line. bench/python_quality.py starts it."""
import argparse
import gzip
import json
import pathlib
import struct
import tarfile

import torch
from torch.nn import functional

import antdt.torch as adt

RECORDS = {"resnet": (8000, 2000), "transformer": (8000, 1000)}
CONTEXT = 48


def member(archive, name):
    """Reads one file of an archive without unpacking the others."""
    with tarfile.open(archive) as tar:
        found = next(m for m in tar if m.name.endswith(name))
        data = tar.extractfile(found).read()
    return gzip.decompress(data) if name.endswith(".gz") else data


class Mnist(torch.utils.data.Dataset):
    def __init__(self, data, part, count):
        archive = data / "mnist.tar.xz"
        images, labels = (member(archive, f"{part}-{what}-ubyte.gz")
                          for what in ("images-idx3", "labels-idx1"))
        size = struct.unpack(">I", images[4:8])[0]
        pixels = torch.frombuffer(bytearray(images[16:]), dtype=torch.uint8).view(size, 1, 28, 28)
        self.x = pixels[:count].float() / 255
        self.y = torch.frombuffer(bytearray(labels[8:]), dtype=torch.uint8)[:count].long()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Text(torch.utils.data.Dataset):
    """Record i is a piece of the text; the second part is the other half of the text."""

    def __init__(self, data, part, count):
        text = member(data / "tinyshakespeare.tar.xz", "/input.txt")
        characters = sorted(set(text))
        index = torch.zeros(256, dtype=torch.long)
        index[torch.tensor(characters)] = torch.arange(len(characters))
        every = index[torch.frombuffer(bytearray(text), dtype=torch.uint8).long()]
        half = len(every) * 9 // 10
        self.every = every[:half] if part == "train" else every[half:]
        self.count, self.kinds = count, len(characters)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        first = i * (len(self.every) - CONTEXT - 1) // self.count
        piece = self.every[first:first + CONTEXT + 1]
        return piece[:-1], piece[1:]


class Block(torch.nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first = torch.nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.second = torch.nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norms = torch.nn.ModuleList([torch.nn.BatchNorm2d(outside) for _ in range(2)])
        self.past = torch.nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x):
        y = self.norms[0](self.first(x)).relu()
        return (self.norms[1](self.second(y)) + self.past(x)).relu()


def resnet():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        Block(8, 16, 2), Block(16, 32, 2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(32, 10))


class Transformer(torch.nn.Module):
    def __init__(self, kinds, width=48):
        super().__init__()
        self.kinds = torch.nn.Embedding(kinds, width)
        self.places = torch.nn.Parameter(torch.randn(CONTEXT, width) * 0.02)
        layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2)
        self.out = torch.nn.Linear(width, kinds)

    def forward(self, x):
        hidden = torch.triu(torch.full((CONTEXT, CONTEXT), float("-inf")), 1)
        y = self.layers(self.kinds(x) + self.places, hidden)
        return self.out(y).transpose(1, 2)  # (batch, kinds, CONTEXT)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=list(RECORDS))
    parser.add_argument("--data", type=pathlib.Path, required=True, help="where the archives are")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    job = adt.init(epochs=2, batch_size=64, seed=options.seed)
    torch.manual_seed(options.seed)
    trained, evaluated = RECORDS[options.model]
    if options.model == "resnet":
        train, rest = Mnist(options.data, "train", trained), Mnist(options.data, "t10k", evaluated)
        net = resnet()
    else:
        train, rest = Text(options.data, "train", trained), Text(options.data, "rest", evaluated)
        net = Transformer(train.kinds)
    job.ddp(net)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.99)
    job.state(model=net, opt=opt, sched=sched)

    def sums(mb):
        scores = net(mb.x)
        loss = functional.cross_entropy(scores, mb.y, reduction="sum") / (mb.y[0].numel())
        right = (scores.argmax(1) == mb.y).float().sum() / mb.y[0].numel()
        return loss, right

    def metric(mb):
        loss, right = sums(mb)
        return adt.Sums(loss=loss, correct=round(float(right)))

    loader, validation = adt.Loader(train), adt.Loader(rest)
    for epoch in job.epochs():
        net.train()
        for step in job.steps(loader):
            for mb in step:
                with step.micro(mb):
                    step.backward(sums(mb)[0], weight=mb.weight)
            if step.apply(opt, clip=1.0):
                sched.step()
        net.eval()
        found = job.evaluate(validation, metric)
    print(json.dumps({"loss": found.mean_loss, "accuracy": found.accuracy}), flush=True)


if __name__ == "__main__":
    main()
