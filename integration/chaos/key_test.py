"""An idempotency key: sent ten times at once, across a restart, and with another spec."""
import concurrent.futures
import json
import unittest

from world import World, world_on_kafka


class KeyTest(unittest.TestCase):
    """One idempotency key, however often and whenever it is sent, is one job."""

    def test_embedded(self):
        with World() as world:
            self.one_key(world)

    def test_kafka(self):
        with world_on_kafka("keys") as world:
            self.one_key(world)

    def one_key(self, world):
        server = world.server()

        def submit(_):
            return json.loads(world.done("submit", "--key", "once", "--name", "one", "-o", "json", "--", "true"))
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(submit, range(10)))
        job = answers[0]["id"]
        self.assertEqual({answer["id"] for answer in answers}, {job})
        self.assertEqual([answer["duplicate"] for answer in answers].count(False), 1)
        server.kill()
        server.start()
        world.until_served()
        again = submit(None)
        self.assertEqual((again["id"], again["duplicate"]), (job, True))
        self.assertEqual([listed["id"] for listed in world.json_lines("ls")], [job])

        refused = world.muster("submit", "--key", "once", "--name", "one", "--", "false")
        self.assertEqual(refused.code, 1)
        self.assertEqual(refused.err, f"muster: key 'once' was used for job {job} with another spec; "
                                      "use a new key for a new job\n")


if __name__ == "__main__":
    unittest.main()
