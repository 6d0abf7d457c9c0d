"""What was acknowledged is there: forty jobs, and the server is killed right after its last answer, on both logs."""
import time
import unittest

from world import World, world_on_kafka


class FortyTest(unittest.TestCase):
    def test_embedded(self):
        with World() as world:
            self.forty(world)

    def test_kafka(self):
        with world_on_kafka("forty") as world:
            self.forty(world)

    def forty(self, world):
        """No agent, so that nothing but the log holds them."""
        server = world.server()
        jobs = [world.submit("--name", f"job-{number}", "--", "true") for number in range(40)]
        time.sleep(0.5)  # the moment of the kill is part of what is tested
        server.kill()
        server.start()
        world.until_served()
        listed = {str(job["id"]): job["name"] for job in world.json_lines("ls", "--limit", "1000")}
        self.assertEqual(listed, {job: f"job-{number}" for number, job in enumerate(jobs)})
        world.verify()


if __name__ == "__main__":
    unittest.main()
