#!/usr/bin/python3
"""The DeepFM of trainer/torch/models, in PyTorch DistributedDataParallel with Gloo.

The comparison for AntDT's trainer: the same model, hyperparameters, global batch and Criteo file,
dense embedding gradients, one compute thread a worker. The records are parsed beforehand and lie in
memory as tensors, so reading costs this program nothing. Prints one JSON object.
"""
import argparse
import json
import math
import os
import tempfile
import time
import zlib

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

NUMBERS, CATEGORIES = 13, 26
FIELDS = NUMBERS + CATEGORIES


def size_class(number):
    """Classes of whole numbers: one for each up to 8, then four for each doubling."""
    if number <= 8:
        return int(number)
    return 8 + int(4 * math.log2(number / 8))


def load(path, limit, buckets):
    labels, dense, ids = [], [], []
    with open(path) as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            labels.append(float(fields[0]))
            row_dense, keys = [], []
            for text in fields[1:1 + NUMBERS]:
                number = float(text) if text else None
                row_dense.append(math.copysign(math.log1p(abs(number)), number) if number else 0.0)
                keys.append("" if number is None else str(size_class(number)))
            keys += fields[1 + NUMBERS:1 + FIELDS]
            dense.append(row_dense)
            ids.append([zlib.crc32(f"{i}:{key}".encode()) % buckets for i, key in enumerate(keys)])
            if len(labels) == limit:
                break
    return torch.tensor(dense), torch.tensor(ids), torch.tensor(labels)


class DeepFm(nn.Module):
    def __init__(self, buckets, dim, hidden):
        super().__init__()
        self.first_order = nn.Embedding(buckets, 1)
        self.vectors = nn.Embedding(buckets, dim)
        nn.init.zeros_(self.first_order.weight)
        nn.init.normal_(self.vectors.weight, std=0.01)
        self.dense = nn.Linear(NUMBERS, 1)
        layers, width = [], FIELDS * dim + NUMBERS
        for out in hidden:
            layers += [nn.Linear(width, out), nn.ReLU()]
            width = out
        self.deep = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, dense, ids):
        v = self.vectors(ids)
        pairs = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1)
        deep = self.deep(torch.cat([v.flatten(1), dense], 1)).squeeze(1)
        return self.first_order(ids).sum((1, 2)) + self.dense(dense).squeeze(1) + pairs + deep


def worker(rank, args, store, answers):
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                            world_size=args.workers)
    torch.manual_seed(7)
    dense, ids, labels = load(args.data, args.rows, args.buckets)
    model = DistributedDataParallel(DeepFm(args.buckets, args.dim, args.hidden),
                                    gradient_as_bucket_view=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loss_of = nn.BCEWithLogitsLoss()
    local = args.batch // args.workers
    order = torch.Generator().manual_seed(1)

    def one_step():
        rows = torch.randint(0, len(labels), (args.batch,), generator=order)
        rows = rows[rank * local:(rank + 1) * local]
        optimizer.zero_grad(set_to_none=False)
        loss = loss_of(model(dense[rows], ids[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(args.warm_up):
        one_step()
    dist.barrier()
    start, steps = time.monotonic(), 0
    while True:
        loss = one_step()
        steps += 1
        if steps % 20 == 0:  # all agree when the time is over
            over = torch.tensor([float(rank == 0 and time.monotonic() - start > args.seconds)])
            dist.all_reduce(over)
            if over.item():
                break
    seconds = time.monotonic() - start
    if rank == 0:
        answers.put({"steps": steps, "seconds": seconds, "loss": loss.item(),
                     "samples_per_second": steps * local * args.workers / seconds})
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="Criteo TSV")
    parser.add_argument("--rows", type=int, default=100000, help="at most this many records")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1024, help="global batch")
    parser.add_argument("--buckets", type=int, default=65536)
    parser.add_argument("--dim", type=int, default=8)
    parser.add_argument("--hidden", type=int, nargs="*", default=[64, 32])
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warm-up", type=int, default=20)
    args = parser.parse_args()
    # Debian's OpenBLAS has its own threads.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(args.threads)
    context = mp.get_context("spawn")
    answers = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as directory:
        mp.spawn(worker, (args, os.path.join(directory, "store"), answers), nprocs=args.workers)
    print(json.dumps({"program": "pytorch-ddp", "workers": args.workers, "batch": args.batch,
                      **answers.get()}))


if __name__ == "__main__":
    main()
