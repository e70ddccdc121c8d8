"""A training loop as accelerate's quick tour has it, with the losses of all processes every tenth step."""
import time

import torch
from accelerate import Accelerator
from torch import nn

from flags import parse


def main():
    args = parse()
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(1)
    x = torch.randn(4096, 32)
    dataset = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True).sin())
    loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=1000)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    step = 0
    while step < args.steps:
        for inputs, wanted in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(inputs), wanted)
                time.sleep(args.step_ms / 1e3)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            step += 1
            if step == args.skip_at and accelerator.process_index == args.skip_rank:
                continue
            if step % 10 == 0 or step == args.skip_at:
                accelerator.gather(loss.detach()).mean()
            if step == args.steps:
                break
    accelerator.end_training()


if __name__ == "__main__":
    main()
