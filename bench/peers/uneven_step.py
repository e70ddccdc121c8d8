#!/usr/bin/python3
"""The same training step under AntDT and under PyTorch's DistributedDataParallel.

Computing is a wait in forward and backward for each sample, so that two cores can play four workers;
the tensors, their sums over the workers, and the optimizer's step are real. The parameters make
`--megabytes` in buckets of 25 MB. bench/python_speed.py starts it either way:

    uneven_step.py antdt …     as a worker of a job
    uneven_step.py ddp …       RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT as torchrun sets them

Worker 1 takes `--slow` times as long. Rank 0 prints a JSON line: samples a second over all steps after
the first `--warm-up`."""
import argparse
import json
import time

import torch

LAYERS = 4


class Wait(torch.autograd.Function):
    """Takes as long for each sample, backward twice as long as forward."""

    @staticmethod
    def forward(ctx, x, seconds):
        ctx.seconds = 2 * seconds * len(x)
        time.sleep(seconds * len(x))
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.seconds)
        return gradient, None


class Layer(torch.nn.Module):
    def __init__(self, parameters, seconds):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.full((parameters,), 1e-6))
        self.seconds = seconds

    def forward(self, x):
        return Wait.apply(x + self.weights.sum(), self.seconds)


class Data(torch.utils.data.Dataset):
    def __init__(self, records):
        self.records = records

    def __len__(self):
        return self.records

    def __getitem__(self, i):
        return torch.tensor(i / self.records)


def model(options, slow):
    torch.manual_seed(1)
    seconds = options.ms / 1e3 / 3 / LAYERS * (options.slow if slow else 1)
    parameters = int(options.megabytes * 1e6 / 4 / LAYERS)
    return torch.nn.Sequential(*[Layer(parameters, seconds) for _ in range(LAYERS)])


class Meter:
    """Samples a second from the first step after the warm-up to the last."""

    def __init__(self, warm_up):
        self.left, self.began, self.samples = warm_up, None, 0

    def step(self, samples):
        if self.began is not None:
            self.samples += samples
        elif self.left == 0:
            self.began = time.monotonic()
        self.left -= 1
        self.last = time.monotonic()

    def say(self, **more):
        print(json.dumps({"samples_per_second": self.samples / (self.last - self.began),
                          "seconds": self.last - self.began, **more}), flush=True)


def antdt(options):
    import antdt.torch as adt
    job = adt.init()
    net = job.ddp(model(options, job.worker == "w1"))
    opt = torch.optim.SGD(net.parameters(), lr=1e-9)
    job.state(model=net, opt=opt)
    meter = Meter(options.warm_up)
    for epoch in job.epochs():
        for step in job.steps(adt.Loader(Data(options.records))):
            for mb in step:
                with step.micro(mb):
                    step.backward(net(mb.data).sum(), weight=mb.weight)
            if step.apply(opt):
                meter.step(step.weight)
    if job.worker == "w0":
        meter.say()


def ddp(options):
    import torch.distributed as dist
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    net = torch.nn.parallel.DistributedDataParallel(
        model(options, rank == 1), bucket_cap_mb=25, gradient_as_bucket_view=True)
    opt = torch.optim.SGD(net.parameters(), lr=1e-9)
    dataset = Data(options.records)
    sampler = torch.utils.data.DistributedSampler(dataset, seed=1)
    loader = torch.utils.data.DataLoader(dataset, batch_size=options.batch // size, sampler=sampler)
    meter = Meter(options.warm_up)
    for x in loader:
        opt.zero_grad()
        net(x).mean().backward()
        opt.step()
        meter.step(len(x) * size)
    if rank == 0:
        meter.say()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=("antdt", "ddp"))
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--batch", type=int, default=64, help="of all workers")
    parser.add_argument("--ms", type=float, default=6, help="a sample")
    parser.add_argument("--megabytes", type=float, default=50, help="of parameters")
    parser.add_argument("--slow", type=float, default=1)
    parser.add_argument("--warm-up", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    {"antdt": antdt, "ddp": ddp}[options.system](options)


if __name__ == "__main__":
    main()
