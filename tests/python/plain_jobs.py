"""Jobs of a plain DDP script that knows nothing of AntDT."""
import json

import python_jobs

SCRIPT = python_jobs.PROGRAMS / "plain_ddp.py"


class PlainJobs(python_jobs.PythonJobs):
    def script(self, python=None, workers=3, extra="", program=(SCRIPT,), windows=("2s", "6s"), **env):
        variables = ", ".join(f'{k} = "{v}"' for k, v in env.items())
        command = json.dumps([python or python_jobs.PYTHONS[0], *map(str, program)])
        return self.write("job.toml", f"""
schema = 1
[job]
name = "plain"
[roles.worker]
count = {workers}
protocol = "torchrun"
command = {command}
env = {{ {variables} }}
[control]
transient_window = "{windows[0]}"
persistent_window = "{windows[1]}"
{extra}
""")

    def status(self, run_dir):
        done = self.antdt("status", run_dir, "--json")
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout else {}

    def verdicts(self, run_dir):
        return {w["id"]: w["straggler"] for w in self.status(run_dir).get("workers", [])
                if w.get("straggler")}
