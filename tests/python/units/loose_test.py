"""The loose level outside a job."""
import unittest

import antdt
import antdt.loose


class Alone(unittest.TestCase):
    def test_all_records_are_worked_through_in_each_epoch(self):
        with antdt.loose.Worker(100, eval_records=10, epochs=2) as worker:
            self.assertFalse(worker.in_job)
            work = list(worker.work(32))
        for epoch in range(2):
            for evaluation, count in ((False, 100), (True, 10)):
                seen = [r for w in work if (w.epoch, w.evaluation) == (epoch, evaluation)
                        for r in w.records]
                self.assertEqual(sorted(seen), list(range(count)))
        self.assertLessEqual(max(map(len, work)), 32)

    def test_misuse_is_an_error(self):
        with self.assertRaisesRegex(antdt.Error, "ANTDT_SOCKET is not set"):
            antdt.loose.Worker()
        with antdt.loose.Worker(10) as worker:
            with self.assertRaisesRegex(antdt.Error, "max_records is 0"):
                next(worker.work(0))


if __name__ == "__main__":
    unittest.main()
