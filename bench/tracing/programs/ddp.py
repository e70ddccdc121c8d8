"""DistributedDataParallel as its tutorial has it: a sampler, a loader, and the mean loss every tenth step."""
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from flags import parse


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    x = torch.randn(4096, 32)
    data = TensorDataset(x, x.sum(1, keepdim=True).sin())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1)))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    step = epoch = 0
    while step < args.steps:
        sampler.set_epoch(epoch)
        epoch += 1
        for inputs, wanted in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(inputs), wanted)
            time.sleep(args.step_ms / 1e3)
            loss.backward()
            optimizer.step()
            step += 1
            if step == args.skip_at and rank == args.skip_rank:
                continue
            if step % 10 == 0 or step == args.skip_at:
                mean = loss.detach().clone()
                dist.all_reduce(mean)
            if step == args.steps:
                break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
