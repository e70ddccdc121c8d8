"""A wire between two network namespaces on which a packet takes a given time in each direction: two tun
devices, and this process between them. It says "ready" when both ends are there.

    slow_wire.py ADDRESS_HERE PID_OF_OTHER ADDRESS_THERE MILLISECONDS
"""

import collections
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
MTU = 60000


def end_of(name, address):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    for command in (f"addr add {address}/24 dev {name}", f"link set {name} mtu {MTU} txqueuelen 10000 up"):
        subprocess.run(["ip", *command.split()], check=True)
    return fd


def main():
    here, pid, there, ms = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    a = end_of("wire", here)
    other = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if libc.setns(other, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    b = end_of("wire2", there)
    delay = float(ms) / 1000
    queues = {a: collections.deque(), b: collections.deque()}  # by where they go
    towards = {a: b, b: a}
    print("ready", flush=True)
    while True:
        due = [q[0][0] for q in queues.values() if q]
        timeout = max(0.0, min(due) - time.monotonic()) if due else None
        for fd in select.select([a, b], [], [], timeout)[0]:
            for _ in range(64):
                try:
                    packet = os.read(fd, MTU + 100)
                except BlockingIOError:
                    break
                queues[towards[fd]].append((time.monotonic() + delay, packet))
        now = time.monotonic()
        for fd, queue in queues.items():
            while queue and queue[0][0] <= now:
                try:
                    os.write(fd, queue[0][1])
                except BlockingIOError:
                    break
                except OSError:
                    pass  # the packet is lost, as on a real wire
                queue.popleft()


if __name__ == "__main__":
    main()
