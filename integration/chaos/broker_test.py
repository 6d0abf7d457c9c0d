"""Kafka's broker is killed in the middle of submissions: they wait or fail clearly, and none acknowledged is lost."""
import concurrent.futures
import time
import unittest

from world import wait_until, world_on_kafka


class BrokerTest(unittest.TestCase):
    """Kafka's broker is killed with SIGKILL while jobs come in, and started again."""

    def test_none_acknowledged_is_lost(self):
        with world_on_kafka("broker") as world:
            server = world.server()
            acknowledged, clear = [], []
            killed_at = 10

            def submit(number):
                seen = world.muster("submit", "--key", f"k-{number}", "--name", f"job-{number}", "--", "true")
                if seen.code == 0:
                    acknowledged.append(seen.out.strip())
                else:
                    self.assertEqual(seen.code, 106, seen.err)
                    clear.append(seen.err.strip())
            for number in range(killed_at):
                submit(number)
            world.broker.kill()
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                pending = [pool.submit(submit, number) for number in range(killed_at, killed_at + 20)]
                time.sleep(1)  # some are waiting now
                world.broker.start()
                for one in pending:
                    one.result()
            for number in range(killed_at + 20):  # asked again with its key, each is there once
                wait_until(lambda: world.muster("submit", "--key", f"k-{number}", "--name", f"job-{number}",
                                                "--", "true").code == 0, f"job {number}")
            listed = [str(job["id"]) for job in world.json_lines("ls", "--limit", "1000")]
            self.assertEqual(len(listed), killed_at + 20)
            self.assertLessEqual(set(acknowledged), set(listed))
            self.assertTrue(server.running() or server.start() is None)
            world.verify()


if __name__ == "__main__":
    unittest.main()
