"""A loose client: takes records, and notes them with their process. With SKIP
it cannot use records that SKIP divides. Usage: loose.py FOLDER RECORDS DELAY [SKIP]"""
import os
import sys
import time

import antdt.loose

folder, records, delay = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
skip = int(sys.argv[4]) if len(sys.argv) > 4 else 0
notes = os.open(f"{folder}/notes-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with antdt.loose.Worker(records) as worker:
    for work in worker.work(20):
        for record in work.records if skip else ():
            if record % skip == 0:
                worker.skip(record, "torn")
        time.sleep(delay * (3 if worker.worker == "w1" else 1))
        os.write(notes, f"{work.epoch} {' '.join(map(str, work.records))}\n".encode())
