"""hold, release, cancel, requeue, retry, update: what each does, and what it refuses to do."""
import pathlib
import unittest

from world import CellTest, wait_until


class ActTest(CellTest):
    agent_options = ("--cpu", "2", "--memory", "4Gi")
    shared = True

    def submit(self, *arguments):
        return self.world.submit("--memory", "64Mi", *arguments)

    def test_hold_and_release(self):
        job = self.submit("--hold", "--", "true")
        self.assertIn("HELD", self.world.done("why", job))
        self.assertEqual(self.world.muster("wait", job, "--timeout", "300ms").code, 101)
        self.world.done("release", job)
        self.assertEqual(self.world.until_terminal(job)["state"], "SUCCEEDED")

    def test_cancel_pending(self):
        job = self.submit("--hold", "--", "true")
        self.world.done("cancel", job)
        ended = self.world.until_terminal(job)
        self.assertEqual((ended["state"], ended["reason"], ended["attempts"]), ("CANCELLED", "BY_USER", []))

    def test_cancel_running(self):
        job = self.submit("--", "sleep", "600")
        self.world.until_state(job, "RUNNING")
        self.world.done("cancel", job)
        self.assertEqual(self.world.until_terminal(job)["state"], "CANCELLED")
        wait_until(lambda: b"600" not in self.commands(), "the member to be gone")

    def commands(self):
        return b"".join(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in self.world.living())

    def test_requeue(self):
        job = self.submit("--", "sh", "-c", "[ $MUSTER_ATTEMPT = 2 ] || sleep 600")
        self.world.until_state(job, "RUNNING")
        self.world.done("requeue", job)
        ended = self.world.until_terminal(job)
        self.assertEqual((ended["state"], len(ended["attempts"])), ("SUCCEEDED", 2))

    def test_retry_is_a_new_job(self):
        first = self.submit("--name", "again", "--", "false")
        self.world.until_terminal(first)
        second = self.world.done("retry", first).strip()
        self.assertNotEqual(first, second)
        self.assertEqual(self.world.until_terminal(second)["state"], "FAILED")
        self.assertEqual(str(self.world.job(second)["retry_of"]), first)
        self.assertEqual(self.world.job(first)["state"], "FAILED")

    def test_update_priority(self):
        self.world.done("node", "drain", "n0")
        low, high = (self.submit("--cpu", "2", "--", "true") for _ in range(2))
        self.world.done("update", high, "priority=5")
        self.world.done("node", "undrain", "n0")
        placed = [self.world.until_terminal(job)["attempts"][0]["position"] for job in (high, low)]
        self.assertEqual(placed, sorted(placed))

    def test_names_and_json(self):
        job = self.submit("--name", "by-name", "--", "true")
        self.world.until_terminal(job)
        shown = self.world.json("show", "by-name")
        self.assertEqual((str(shown["id"]), shown["schema"]), (job, 1))
        for key in ("name", "queue", "state", "reason", "job_exit", "attempts"):
            self.assertIn(key, shown)
        attempt = shown["attempts"][0]
        self.assertEqual(set(attempt) >= {"attempt", "position", "end", "members"}, True, attempt)
        self.assertEqual(set(attempt["members"][0]) >= {"task", "rank", "node", "exit"}, True, attempt)


class OperateTest(CellTest):
    agent_options = ("--cpu", "2", "--memory", "4Gi")
    agent_count = 2
    shared = True

    def tearDown(self):
        for node in ("n0", "n1"):
            self.world.done("node", "undrain", node)

    def test_drain_moves_nothing_in_and_undrain_lets_it(self):
        self.world.done("node", "drain", "n0")
        jobs = [self.world.submit("--memory", "64Mi", "--", "true") for _ in range(4)]
        nodes = {self.world.until_terminal(job)["attempts"][0]["members"][0]["node"] for job in jobs}
        self.assertEqual(nodes, {"n1"})
        self.assertIn("drain", self.world.done("node", "show", "n0").lower())

    def test_queue_limit(self):
        self.world.done("queue", "set", "small", "limit.cpu=1")
        first, second = [self.world.submit("--queue", "small", "--memory", "64Mi", "--", "sleep", seconds)
                         for seconds in ("3600", "0")]
        self.world.until_state(first, "RUNNING")
        self.assertIn("QUEUE_LIMIT", self.world.done("why", second))
        self.world.done("cancel", first)
        self.assertEqual(self.world.until_terminal(second)["state"], "SUCCEEDED")
        queue = {queue["name"]: queue for queue in self.world.json_lines("queue", "ls")}["small"]
        self.assertEqual(queue["limit"], {"cpu": 1000})
        self.world.done("queue", "rm", "small")
        self.assertNotIn("small", {queue["name"] for queue in self.world.json_lines("queue", "ls")})


if __name__ == "__main__":
    unittest.main()
