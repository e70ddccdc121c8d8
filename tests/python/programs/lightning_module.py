"""A LightningModule, trained by antdt.integrations.lightning or by Lightning (integrations_test.py). Without
Lightning it is a torch.nn.Module with the same methods. Usage: lightning_module.py ours|theirs OUT [EPOCHS]

EPOCHS: ours ends the training after so many."""
import sys

import torch

try:
    import pytorch_lightning
    Module = pytorch_lightning.LightningModule
except ImportError:
    Module = torch.nn.Module

RECORDS, EPOCHS = 600, 3


class Sines(Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return torch.nn.functional.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        return [optimizer], [{"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.9),
                              "interval": "step"},
                             torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)]


def main():
    which, out = sys.argv[1:3]
    enough = int(sys.argv[3]) if len(sys.argv) > 3 else EPOCHS + 1
    torch.manual_seed(1)
    x = torch.randn(RECORDS, 4)
    dataset = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True).sin())
    loader = torch.utils.data.DataLoader(dataset, batch_size=25)
    module = Sines()
    if which == "ours":
        from antdt.integrations.lightning import fit
        epochs = iter(range(1, EPOCHS + 1))
        fit(module, loader, max_epochs=EPOCHS, gradient_clip_val=0.5,
            until=lambda found: "enough" if next(epochs) == enough else None)
    else:
        pytorch_lightning.Trainer(
            max_epochs=EPOCHS, gradient_clip_val=0.5, accelerator="cpu", logger=False,
            enable_checkpointing=False, enable_progress_bar=False).fit(module, loader)
    if out != "-":
        torch.save(module.state_dict(), out)


if __name__ == "__main__":
    main()
