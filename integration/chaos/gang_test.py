"""All or nothing: what a gang holds is watched at every position of the log."""
import unittest

from world import CellTest

GPUS = ("--replicas", "2", "--gpu", "8", "--cpu", "1", "--memory", "16Mi")


class TwoGangsTest(CellTest):
    """Two nodes of eight GPUs, and gangs that each need all sixteen."""

    agent_count = 2
    agent_options = ("--cpu", "8", "--memory", "4Gi", "--gpu", "8", "--gpu-model", "a100")

    def test_they_never_hold_half_each(self):
        jobs = [self.world.submit(*GPUS, "--", "sleep", "0.2") for _ in range(10)]
        for job in jobs:
            self.assertEqual(self.world.until_terminal(job)["state"], "SUCCEEDED")
        held = {}  # job: the members that hold their places
        placed = []
        for event in self.world.exported():
            record = event["record"]
            if "placed" in record:
                body = record["placed"]
                self.assertEqual(held, {}, f"placed at {event['position']} while another holds its places")
                places = body["places"]
                self.assertEqual(sorted(place["node"] for place in places), ["n0", "n1"])
                self.assertEqual([sorted(place["devices"]) for place in places], [list(range(8))] * 2)
                held = {body["job"]: {0, 1}}
                placed.append(body["job"])
            elif "exited" in record:
                member = record["exited"]["member"]
                held[member["job"]].discard(member.get("rank", 0))
                if not held[member["job"]]:
                    del held[member["job"]]
        self.assertEqual(sorted(placed, key=int), jobs)
        self.assertEqual(held, {})


class NeverTest(CellTest):
    agent_count = 2
    agent_options = ("--cpu", "8", "--memory", "4Gi", "--gpu", "8", "--gpu-model", "a100")

    def test_says_so_at_once_and_holds_nothing(self):
        job = self.world.submit("--replicas", "3", "--gpu", "8", "--", "true")
        why = self.world.json("why", job)
        self.assertTrue(why["never"], why)
        nodes = self.world.json_lines("node", "ls")
        self.assertEqual([(node["cpu_free_milli"], len(node["devices_free"])) for node in nodes], [(8000, 8)] * 2)
        fits = self.world.submit(*GPUS, "--", "true")  # what comes after isn't held up
        self.assertEqual(self.world.until_terminal(fits)["state"], "SUCCEEDED")
        self.assertEqual(self.world.job(job)["attempts"], [])
        self.assertRefused(104, f"muster: job {job}: can never run: wants 3×8 = 24 GPUs; all nodes together have 16; "
                           f"`muster why {job}` says more", "wait", job)

    def test_a_node_that_joins_makes_it_run(self):
        job = self.world.submit("--replicas", "3", "--gpu", "8", "--", "true")
        self.assertTrue(self.world.json("why", job)["never"])
        self.world.agent("n2", *self.agent_options)
        self.assertEqual(self.world.until_terminal(job)["state"], "SUCCEEDED")


if __name__ == "__main__":
    unittest.main()
