"""Worker w1 kills itself in the middle of every second backward, while the others compute theirs
and sum the parts that are complete. The others note their allocated memory when the members change
(aborts_test.py). Usage: aborts.py FOLDER RECORDS KILLS"""
import ctypes
import gc
import os
import signal
import sys
import time

import torch

import antdt.torch as adt

folder, records, kills = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
WIDTH = 256


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return records

    def __getitem__(self, i):
        return torch.full((WIDTH,), i / records)


job = adt.init()
layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(8)]
net = job.ddp(torch.nn.Sequential(*layers), bucket_mb=0.2)  # a bucket a layer
opt = torch.optim.Adam(net.parameters(), lr=1e-6)
job.state(model=net, opt=opt)
dies = job.worker == "w1" and int(os.environ["ANTDT_ATTEMPT"]) <= kills
backwards = 0
notes = os.open(f"{folder}/notes-{job.worker}-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def middle_of_backward(gradient):
    global backwards
    backwards += 1
    if dies and backwards == 2:
        os.kill(os.getpid(), signal.SIGKILL)


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
        "keepcost")]


mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo2


def note_memory(now):
    """The memory in use, in all arenas and by mmap, without what the allocator keeps for later."""
    gc.collect()
    memory = mallinfo2()
    os.write(notes, f"{now.size} {memory.uordblks + memory.hblkhd}\n".encode())


layers[4].bias.register_hook(middle_of_backward)
job.on("regroup", note_memory)
loader = adt.Loader(Rows())
for epoch in job.epochs():
    for step in job.steps(loader):
        for mb in step:
            with step.micro(mb):
                if job.size == 1:
                    time.sleep(0.1)  # leaves records to the one that is started again
                step.backward(net(mb.data).square().sum(), weight=mb.weight)
        step.apply(opt)
