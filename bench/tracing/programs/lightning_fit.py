"""A LightningModule, fitted by Lightning's Trainer with its strategy "ddp", with a metric of all processes
every tenth step."""
import os
import time

import lightning
import torch
from torch import nn

from flags import parse


class Sines(lightning.LightningModule):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.net = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1))

    def training_step(self, batch, batch_idx):
        inputs, wanted = batch
        loss = nn.functional.mse_loss(self.net(inputs), wanted)
        time.sleep(self.args.step_ms / 1e3)
        if self.global_step == self.args.skip_at and self.global_rank == self.args.skip_rank:
            return loss
        if self.global_step % 10 == 0 or self.global_step == self.args.skip_at:
            self.all_gather(loss.detach())
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return [optimizer], [torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=1000)]


def main():
    args = parse()
    torch.manual_seed(1)
    x = torch.randn(4096, 32)
    dataset = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True).sin())
    loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy="ddp",
        max_steps=args.steps, gradient_clip_val=1.0, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Sines(args), loader)


if __name__ == "__main__":
    main()
