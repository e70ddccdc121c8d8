"""Members with uneven shares train the same model on the same batches as one process."""
import collections
import json
import unittest

import python_jobs
from harness import processes_of

# For an interpreter with PyTorch: trains the batches in the notes again, and compares the result
# with the checkpoint.
REPLAY = """
import json, sys
sys.path.insert(0, {programs!r})
import torch
import antdt.torch as adt
import exact

steps = json.load(open({steps!r}))
texts, net = exact.Texts(), exact.model()
net.load_state_dict({{k: torch.tensor(v, dtype=torch.float64) for k, v in steps["begin"].items()}})
opt, schedule = exact.optimizer_of(net)
for records in steps["steps"]:
    opt.zero_grad()
    weight = texts.weight[records]
    (exact.loss_of(net, texts.x[records], texts.y[records], weight) / weight.sum()).backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), exact.CLIP)
    opt.step()
    schedule.step()
found = adt.load({run!r})
assert found["sched"]["last_epoch"] == len(steps["steps"]), found["sched"]
print(max((found["model"][k] - v).abs().max().item() for k, v in net.state_dict().items()))
"""
EPOCHS = 2
RECORDS = 3000


@python_jobs.needs_torch
class Exact(python_jobs.PythonJobs):
    def steps_of(self, run_dir):
        """The parameters at the beginning, and the records of each step that was applied, in order.
        A step of which nobody had records, as the last of an epoch, changes nothing."""
        begins, records = collections.defaultdict(list), collections.defaultdict(list)
        applied = {}  # step -> generation
        for path in self.dir.glob("notes-*"):
            for line in path.read_text().splitlines():
                note = json.loads(line)
                if "begin" in note:
                    begins[note["generation"]].append(note["begin"])
                elif "applied" in note:
                    step, generation = note["applied"]
                    self.assertEqual(applied.setdefault(step, generation), generation)
                else:
                    records[tuple(note["at"])] += note["records"]
        # If a generation ends before its first step, the next one has the initial parameters.
        begins = begins[applied[min(applied)]]
        self.assertTrue(all(b == begins[0] for b in begins), "members began with unlike parameters")
        steps = [records[step, applied[step]] for step in sorted(applied)]
        self.assertEqual(sorted(sum(steps, [])), sorted(list(range(RECORDS)) * EPOCHS))
        return {"begin": begins[0], "steps": steps}

    def check(self, python, run_dir, least_steps):
        steps = self.steps_of(run_dir)
        self.assertGreaterEqual(len(steps["steps"]), least_steps)
        path = self.write("steps.json", json.dumps(steps))
        text = REPLAY.format(programs=str(python_jobs.PROGRAMS), steps=str(path), run=str(run_dir))
        program = self.write("replay.py", text)
        done = self.run_alone(program, python=python)
        self.assertEqual(done.returncode, 0, done.stderr)
        print(f"{len(steps['steps'])} steps, greatest difference {float(done.stdout):.1e}", flush=True)
        self.assertLess(float(done.stdout), 1e-6)

    def test_uneven_shares_train_what_one_process_trains(self):
        for python in python_jobs.PYTHONS:
            with self.subTest(python):
                for path in self.dir.glob("notes-*"):
                    path.unlink()
                job = self.toml("exact.py", self.dir, python=python, workers=3, records=RECORDS,
                                epochs=EPOCHS, batch=50)  # 17, 17 and 16
                run = self.run_job(job)
                self.assert_done(run)
                self.assert_once(run, EPOCHS, RECORDS)
                self.check(python, run.dir, 100)
                self.assert_nothing_left()

    def test_uneven_shares_train_the_same_when_a_member_is_killed(self):
        job = self.toml("exact.py", self.dir, 0.02, workers=3, records=RECORDS, epochs=EPOCHS, batch=50)
        process, run_dir = self.start_job(job)
        for samples in (0.2, 0.5):
            self.await_training(run_dir, samples * RECORDS * EPOCHS)
            found = [pid for pid, command in processes_of(str(self.dir)) if "exact.py" in command
                     and "python" in command.split(" ", 1)[0]]
            self.kill(sorted(found)[0])
        summary = self.finish(process, run_dir)
        self.assertGreater(summary["generations"], 1)
        self.assertEqual(summary["lineages"], 1)
        self.check(None, run_dir, 100)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
