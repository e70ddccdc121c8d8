"""One rank of torch.distributed's gloo all_reduce: allreduce_gloo.py RANK RANKS PORT BYTES SECONDS.

Rank 0 prints the median of a call in us.
"""
import os
import statistics
import sys
import time

rank, ranks, port, size = (int(a) for a in sys.argv[1:5])
seconds = float(sys.argv[5])
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")

import torch  # noqa: E402 (reads the environment)
import torch.distributed as dist  # noqa: E402

torch.set_num_threads(1)
dist.init_process_group("gloo", rank=rank, world_size=ranks)
values = torch.ones(max(1, size // 4))
over = torch.zeros(1)
times, begin = [], time.perf_counter()
while True:
    values.fill_(1)
    start = time.perf_counter()
    dist.all_reduce(values)
    end = time.perf_counter()
    if values[0] != ranks or values[-1] != ranks:
        sys.exit(f"a sum over {ranks} ranks is {values[-1]}")
    times.append((end - start) * 1e6)
    over[0] = float(rank == 0 and len(times) > 6 and end - begin >= seconds)
    dist.all_reduce(over)
    if over[0] > 0:
        break
if rank == 0:
    print(statistics.median(times[5:]))
dist.destroy_process_group()
