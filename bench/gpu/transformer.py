#!/usr/bin/env python3
"""A small transformer that predicts the next token, in bfloat16, as a worker of AntDT or alone.

    transformer.py [--device cuda|cpu] [--steps 60] [--width 1024] [--layers 12] [--length 512] [--batch 32]

Prints one line of JSON: tokens a second, floating-point operations a second, and which share that is of
what this device reaches in a large product of bfloat16 matrices, measured in the same process."""
import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional

import antdt.torch as adt

VOCABULARY = 8192


class Tokens(torch.utils.data.Dataset):
    """Record i is a sequence of tokens in which each follows from the one before, with some noise."""

    def __init__(self, records, length):
        self.records, self.length = records, length

    def __len__(self):
        return self.records

    def __getitem__(self, i):
        random = torch.Generator().manual_seed(i)
        start = torch.randint(VOCABULARY, (1,), generator=random)
        noise = (torch.rand(self.length + 1, generator=random) < 0.1).long()
        tokens = (start + torch.cumsum(7 + noise, 0)) % VOCABULARY
        return tokens[:-1], tokens[1:]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.net = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        split = self.mix(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.net(self.between(x))


class Transformer(nn.Module):
    def __init__(self, width, layers, length):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, max(1, width // 64)) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, x):
        y = self.tokens(x) + self.places.weight[:x.shape[1]]
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


def operations_of_a_token(net, args):
    """Forward and backward: six for each weight of a matrix, twelve for each pair of attention, of which a causal
    one needs half."""
    weights = sum(p.numel() for name, p in net.named_parameters()
                  if p.dim() == 2 and not name.startswith(("tokens", "places")))
    return 6 * weights + 6 * args.layers * args.length * args.width


def wait_for(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def product_speed(device):
    """Operations a second of a large product of matrices: the best of five."""
    size = 8192 if device.type == "cuda" else 1024
    a = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    b = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    best = 0.0
    for _ in range(6):
        wait_for(device)
        begin = time.monotonic()
        a @ b
        wait_for(device)
        best = max(best, 2 * size**3 / (time.monotonic() - begin))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, value in (("steps", 60), ("width", 1024), ("layers", 12), ("length", 512), ("batch", 32)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    device = torch.device(args.device)

    job = adt.init(epochs=1, batch_size=args.batch)
    torch.manual_seed(1)
    net = job.ddp(Transformer(args.width, args.layers, args.length).to(device))
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4)
    job.state(model=net, opt=opt)
    loader = adt.Loader(Tokens(args.steps * args.batch, args.length), num_workers=2)
    marks, tokens, losses = [], [], []
    for _ in job.epochs():
        for step in job.steps(loader):
            own, loss_of_step = 0, 0.0
            for mb in step:
                x, y = mb.x.to(device, non_blocking=True), mb.y.to(device, non_blocking=True)
                with step.micro(mb), torch.autocast(device.type, torch.bfloat16):
                    scores = net(x)
                    loss = functional.cross_entropy(scores.float().flatten(0, 1), y.flatten(), reduction="sum")
                    step.backward(loss, weight=y.numel())
                own += y.numel()
                loss_of_step += loss.item()
            if step.apply(opt, clip=1.0):
                wait_for(device)
                marks.append(time.monotonic())
                tokens.append(own)
                losses.append(loss_of_step / max(1, own))
    first = min(5, len(marks) // 2)  # the first steps warm up
    speed = sum(tokens[first + 1:]) / (marks[-1] - marks[first])
    achieved = speed * operations_of_a_token(net, args)
    reachable = product_speed(device)
    print(json.dumps({
        "tokens_per_second": speed, "tflops": achieved / 1e12, "product_tflops": reachable / 1e12,
        "share": achieved / reachable, "first_loss": losses[0], "last_loss": losses[-1],
        "memory_bytes": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0}), flush=True)


if __name__ == "__main__":
    main()
