"""antdt diagnose: the archive of a running and of an ended job has what a bug report needs, and no
secret."""

import io
import json
import os
import stat
import tarfile
import unittest

from monitoring import Watched
from harness import await_true, needs_trainer

# Where each of them is put is below. None may be in the archive.
VARIABLE = "variable-4711-xyzzy"
ARGUMENT = "argument-0815-plugh"
LOGGED = "logged-2342-frobozz"
OWN = "own-1337-quux"


@needs_trainer
class Diagnose(Watched):
    def secret_job(self):
        hook = self.write("hook.sh", f'echo "sent {ARGUMENT}"; echo "client password: {LOGGED}"\n'
                                     f'echo "for {OWN}"\n')
        return (f'[roles.worker.env]\nMY_LICENSE = "{VARIABLE}"\nOMP_NUM_THREADS = "1"\n'
                f'[hooks]\nevent = ["sh", "{hook}", "--token", "{ARGUMENT}"]\n')

    def diagnose(self, *args):
        """The archive's files and what the command said."""
        self.env["SERVICE_TOKEN"] = OWN
        done = self.antdt("diagnose", self.run_dir, *args, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        archive = self.dir / f"{self.run_dir.name}.diagnose.tar"
        self.assertEqual(stat.S_IMODE(archive.stat().st_mode), 0o600)
        self.assertIn(archive.name, done.stdout)
        content = archive.read_bytes()
        for secret in (VARIABLE, ARGUMENT, LOGGED, OWN):
            self.assertNotIn(secret.encode(), content)
            self.assertNotIn(secret, done.stdout + done.stderr)
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            files = {m.name.split("/", 1)[1]: tar.extractfile(m).read().decode() for m in tar}
        return files, done.stdout

    def test_archive_of_a_job_has_no_secret(self):
        self.start(self.secret_job())
        self.await_event("phase")
        hooks = self.run_dir / "hooks.log"
        await_true(lambda: hooks.exists() and LOGGED in hooks.read_text(), 30, "the hook has written")
        # The secrets are where the archive is made from.
        self.assertIn(VARIABLE, (self.run_dir / "job.json").read_text())
        self.assertIn(ARGUMENT, (self.run_dir / "job.json").read_text())
        log = self.run_dir / "logs" / "w0.1.err"  # the workers of this job write none
        log.write_text(f"with {VARIABLE}\nstep 1\n")
        os.symlink(self.write("foreign", "not of this run"), self.run_dir / "logs" / "w9.1.out")

        files, said = self.diagnose()
        self.assertEqual(json.loads(files["status.json"])["state"], "training")
        job = json.loads(files["job.json"])
        self.assertEqual(job["roles"]["worker"]["env"],
                         {"MY_LICENSE": "(removed)", "OMP_NUM_THREADS": "1"})
        self.assertEqual(job["hooks"]["event"][2:], ["--token", "(removed)"])
        self.assertIn("client password: (removed)", files["hooks.log"])
        self.assertIn("sent (removed)", files["hooks.log"])
        self.assertIn("start", [json.loads(e)["kind"] for e in files["events.jsonl"].splitlines()])
        self.assertEqual(json.loads(files["accounts.json"])["finished"], False)
        self.assertTrue(files["versions.txt"].startswith("antdt "), files["versions.txt"])
        self.assertIn("MemTotal", files["host.txt"])
        self.assertIn("state.db", files["run-directory.txt"])
        self.assertEqual(files["logs/w0.1.err"], "with (removed)\nstep 1\n")
        self.assertNotIn("(removed)", files["agent.log"], "paths are no secrets")
        self.assertNotIn("logs/w9.1.out", files)
        self.assertIn("keys and certificates: never read", said)
        self.assertIn("MY_LICENSE", said)
        self.assertIn("MY_LICENSE", files["left-out.txt"])

        self.stop()
        files, said = self.diagnose("--lines", "1")
        self.assertEqual(json.loads(files["summary.json"])["state"], "stopped")
        self.assertNotIn("status.json", files)
        self.assertEqual(len(files["hooks.log"].splitlines()), 1)
        self.assertIn("older lines of", said)
        self.assertIn("hooks.log", said)
        self.assert_nothing_left()

    def test_a_run_that_is_none_is_refused(self):
        done = self.antdt("diagnose", self.dir / "nothing", timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("nothing", done.stderr)
        self.assertEqual(list(self.dir.glob("*.tar")), [])


if __name__ == "__main__":
    unittest.main()
