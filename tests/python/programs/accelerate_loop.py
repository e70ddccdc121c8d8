"""A loop as it is written for accelerate (integrations_test.py). Usage: accelerate_loop.py ours|theirs OUT [FAIL | EPOCHS]

EPOCHS: the loop goes through so many, and the job has more."""
import os
import sys
import time

import torch

if sys.argv[1] == "ours":
    from antdt.integrations.accelerate import Accelerator
else:
    from accelerate import Accelerator

RECORDS, EPOCHS = 600, 3
torch.manual_seed(1)
x = torch.randn(RECORDS, 4)
dataset = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True).sin())
loader = torch.utils.data.DataLoader(dataset, batch_size=25)
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.99)

accelerator = Accelerator()
net, opt, loader, sched = accelerator.prepare(net, opt, loader, sched)
fails = len(sys.argv) > 3 and sys.argv[3] == "fails"
for epoch in range(int(sys.argv[3]) if len(sys.argv) > 3 and not fails else EPOCHS):
    for n, (inputs, wanted) in enumerate(loader):
        with accelerator.accumulate(net):
            opt.zero_grad()
            loss = torch.nn.functional.mse_loss(net(inputs), wanted)
            accelerator.backward(loss)
            opt.step()
            sched.step()
        if fails and n == 5 and os.environ.get("ANTDT_ATTEMPT") == "1":
            raise ValueError("of the loop's own")
        time.sleep(0.005)
accelerator.end_training()
accelerator.print("loss", loss.item() if sys.argv[1] == "theirs" else "")
if accelerator.is_main_process and sys.argv[2] != "-":
    torch.save(accelerator.unwrap_model(net).state_dict(), sys.argv[2])
