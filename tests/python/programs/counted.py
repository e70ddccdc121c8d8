"""What the programs train: numbers, and a module that counts how often each of them was trained."""
import torch


class Numbers(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return i


class Tally(torch.nn.Module):
    """The gradient of its sum is how often each number was in a step; `add` adds it."""

    def __init__(self, count):
        super().__init__()
        self.counts = torch.nn.Parameter(torch.zeros(count))

    def forward(self, i):
        return self.counts[i].sum()

    @torch.no_grad()
    def add(self, weight):
        """The gradient was divided by `weight`, that of the step."""
        self.counts += (self.counts.grad * weight).round()
