"""Domains that send one another significant updates (trainer.sync = "gaia"): each record is in the
merged model once, whoever leaves, comes, or is lost, and models learn as by all-reduce."""

import json
import math
import statistics
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
import tally
from harness import BIN, gunzip, needs_trainer, unpack

TWO = jobs.domains(east=["w0", "w1"], west=["w2", "w3"])


@needs_trainer
class Gaia(tally.ReplicasTest):
    def job(self, workers=4, delay="10ms", whole_every=20, extra="", domain=TWO,
            program="antdt-trainer", **kinds):
        path = self.job_of("gaia", workers, delay,
                           f"gaia = {{ whole_every = {whole_every} }}\n{domain}{extra}", **kinds)
        path.write_text(path.read_text().replace('"antdt-trainer"', json.dumps(program)))
        return path

    def pids(self, run_dir, *workers):
        found = {w["id"]: w["pid"] for w in self.await_answer(run_dir)["workers"]}
        return [found[w] for w in workers]

    def await_generation(self, run_dir, after, workers=4):
        """The number of the first generation of so many workers that is seen after that one."""
        return self.await_status(
            run_dir, lambda s: s.get("generation", 0) > after and s["state"] == "training"
            and sum(w["rank"] is not None for w in s["workers"]) == workers, 60,
            f"{workers} workers train in a generation after {after}")["generation"]

    def test_every_record_is_in_the_merged_model_once_an_epoch(self):
        three = jobs.domains(a=["w0", "w1", "w2"], b=["w3"], c=["w4", "w5"])
        for workers, domain, whole_every in ((2, jobs.domains(a=["w0"], b=["w1"]), 50), (4, TWO, 7),
                                             (4, TWO, 1), (6, three, 50)):
            with self.subTest(workers=workers, whole_every=whole_every):
                path = self.job(workers, "", whole_every, domain=domain, records=2000)
                run = self.run_job(path)
                self.assert_done(run)
                self.assert_exact(run.summary, run.dir, 2000, self.EPOCHS)
                traffic = run.summary["traffic"]
                self.assertGreater(traffic["parameters_bytes"], 0)
                for worker in run.summary["workers"]:
                    sent = worker["updates"]
                    self.assertGreaterEqual(sent["messages"], sent["whole"])
                    self.assertGreater(sent["whole"], 1, "two epochs end with one each")
                    self.assertGreater(sent["sent_share"], 0)
                    self.assertLess(sent["sent_share"], 1)
                self.assertIn("gaia: ", run.summary["collective"])
                self.assertRegex(run.out, r"updates between domains: \d+ messages of each domain")

    def test_a_worker_is_killed_and_its_domain_goes_on_with_the_replica(self):
        process, run_dir = self.begin(delay="80ms")
        for worker in ("w1", "w2"):
            generation = self.await_answer(run_dir)["generation"]
            self.kill(*self.pids(run_dir, worker))
            self.await_generation(run_dir, generation)
            self.await_more(run_dir)
        self.end(process, run_dir)

    def kill_domain(self, run_dir, *workers):
        """Kills these, and returns the number of the generation that they were in."""
        generation = self.await_answer(run_dir)["generation"]
        for pid in self.pids(run_dir, *workers):
            self.kill(pid)
        return generation

    def test_a_whole_domain_is_killed_and_its_records_are_trained_again(self):
        away = self.dir / "away"  # while it is there, no worker that is started joins
        program = self.write("bin/antdt-trainer", f"""#!/bin/sh
while [ -e {away} ]; do sleep 0.05; done
exec {BIN / "antdt-trainer"} "$@"
""")
        program.chmod(0o755)
        process, run_dir = self.begin(delay="100ms", program=str(program))
        for domain in (("w2", "w3"), ("w0", "w1")):
            away.touch()
            generation = self.kill_domain(run_dir, *domain)
            generation = self.await_generation(run_dir, generation, workers=2)
            self.await_more(run_dir)
            away.unlink()
            self.await_generation(run_dir, generation)
            self.await_more(run_dir, 2500)  # more than one whole exchange
        summary = self.end(process, run_dir)
        self.assertGreaterEqual(summary["generations"], 5)

    def test_a_domain_that_is_killed_and_started_again_at_once(self):
        process, run_dir = self.begin(delay="100ms")
        for domain in (("w2", "w3"), ("w0", "w1")):
            self.await_generation(run_dir, self.kill_domain(run_dir, *domain))
            self.await_more(run_dir, 2500)  # more than one whole exchange
        self.end(process, run_dir)

    def test_workers_leave_and_come(self):
        process, run_dir = self.begin(workers=6, delay="60ms", domain=jobs.domains(
            east=["w0", "w1", "w4"], west=["w2", "w3", "w5"]))
        self.evict_and_resize(process, run_dir, (2, 6))  # of one domain at first

    def test_a_stopped_job_goes_on_from_replicas_that_were_made_equal(self):
        process, run_dir = self.begin(extra='[checkpoint]\nevery = "400ms"\n')
        self.stop_and_resume(process, run_dir)

    def test_a_worker_in_no_domain_is_refused_before_anything_starts(self):
        path = self.job(workers=4, domain=jobs.domains(east=["w0", "w1"], west=["w2"]))
        done = self.antdt("run", path)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("w3 would run on host", done.stderr)
        self.assertIn("which is in no [[domain]]", done.stderr)


# Of 10,000 digits, two runs of the same job differ by some 0.004, and one by Gaia in some fifty is
# 0.014 below the others. So the means of three seeds are compared, and of more where three do not
# tell on which side of the bound they are.
MOST_BEHIND = 0.005


def error_of(accuracy):
    """The standard error of the difference of the means."""
    return math.sqrt(sum(statistics.variance(found) / len(found) for found in accuracy.values()))


@needs_trainer
class GaiaQuality(tally.TallyTest):
    def test_mnist_is_learned_as_by_all_reduce_with_a_part_of_the_bytes(self):
        folder = unpack("mnist", self.dir)
        for archive in folder.glob("*.gz"):
            gunzip(archive)
        job = (jobs.mnist(folder, workers=4, epochs=2)
               .replace('optimizer = "adam"', 'optimizer = "sgd"\nmomentum = 0.9')
               .replace("lr = 1e-3", "lr = 0.05").replace("global = 128", "global = 256")) + TWO
        accuracy, between = {"allreduce": [], "gaia": []}, {"allreduce": 0, "gaia": 0}
        for seed in range(3, 13):
            for sync in accuracy:
                text = job.replace("seed = 3", f"seed = {seed}").replace("allreduce", sync)
                run = self.run_job(self.write(f"{sync}-{seed}.toml", text))
                self.assert_done(run)
                self.assert_once(run, 2, 60000)
                accuracy[sync].append(run.summary["epochs"][-1]["eval"]["accuracy"])
                between[sync] += sum(t["sent_bytes"] for t in run.summary["traffic"]["domains"]
                                     if t["from_domain"] != t["to_domain"])
            behind = statistics.mean(accuracy["allreduce"]) - statistics.mean(accuracy["gaia"])
            if len(accuracy["gaia"]) >= 3 and abs(behind - MOST_BEHIND) > 2.5 * error_of(accuracy):
                break
        print(f"accuracy {accuracy}, bytes between domains {between}", flush=True)
        self.assertLess(behind, MOST_BEHIND)
        self.assertLess(between["gaia"], 0.6 * between["allreduce"])


if __name__ == "__main__":
    unittest.main()
