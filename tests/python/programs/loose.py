"""A loose client: takes records, and notes them with their process. Usage: loose.py FOLDER RECORDS DELAY"""
import os
import sys
import time

import antdt.loose

folder, records, delay = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
notes = os.open(f"{folder}/notes-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with antdt.loose.Worker(records) as worker:
    for work in worker.work(20):
        time.sleep(delay * (3 if worker.worker == "w1" else 1))
        os.write(notes, f"{work.epoch} {' '.join(map(str, work.records))}\n".encode())
