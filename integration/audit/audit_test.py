"""Other programs read what happened: kcat, a Python consumer with the published schema, and `muster log export`."""
import json
import pathlib
import subprocess
import unittest

from world import DEADLINE_S, World, world_on_kafka

READER = pathlib.Path(__file__).resolve().parent / "read_topic.py"
LIFE = ["Exited", "Exited", "Placed", "Prepared", "Prepared", "Started", "Started", "Submitted"]


def gang_to_its_end(world):
    """Two members that succeed; the job's id."""
    world.server()
    world.agents(1, "--cpu", "4", "--memory", "4Gi")
    job = world.submit("--key", "audited", "--replicas", "2", "--memory", "64Mi", "--", "true")
    if world.until_terminal(job)["state"] != "SUCCEEDED":
        raise AssertionError(world.job(job))
    return job


class AuditTest(unittest.TestCase):
    def test_kafka_clients(self):
        with world_on_kafka("audit") as world:
            job = gang_to_its_end(world)
            exported = {line["position"]: line for line in world.exported()}
            keys = [line["key"] for line in exported.values() if line["type"] == "Submitted"] + [f"job/{job}"]
            events = world.events(job)
            self.assertEqual(sorted(event["type"] for event in events), LIFE)
            self.by_kcat(world, keys, events)
            self.by_python(world, keys, events, exported)

    def by_kcat(self, world, keys, events):
        # Counted, not `-e`: the leader's ticks come faster than kcat sees an end.
        out = subprocess.run(["kcat", "-C", "-q", "-b", world.broker.address, "-t", "audit", "-o", "beginning",
                              "-c", str(events[-1]["position"] + 1), "-f", r"%o\t%k\t%h\n"],
                             capture_output=True, text=True, check=True, timeout=DEADLINE_S).stdout
        seen = [line.split("\t") for line in out.splitlines()]
        self.assertEqual([(int(offset), headers) for offset, key, headers in seen if key in keys],
                         [(event["position"], f"type={event['type']},format=1") for event in events])

    def by_python(self, world, keys, events, exported):
        selected = [argument for key in keys for argument in ("--key", key)]
        out = subprocess.run([str(READER), world.broker.address, "audit", *selected],
                             capture_output=True, text=True, check=True, timeout=DEADLINE_S).stdout
        seen = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([line["position"] for line in seen], [event["position"] for event in events])
        for line in seen:
            mine = exported[line["position"]]
            self.assertEqual((line["type"], line["key"], line["record"]), (mine["type"], mine["key"], mine["record"]))
            self.assertEqual(line["format"], 1)

    def test_export_of_an_embedded_log(self):
        with World() as world:
            job = gang_to_its_end(world)
            exported = world.exported()
            self.assertEqual([line["position"] for line in exported], list(range(len(exported))))
            self.assertEqual(exported[0]["type"], "LogOpened")
            mine = [line for line in exported if line["type"] == "Submitted" or line["key"] == f"job/{job}"]
            self.assertEqual(sorted(line["type"] for line in mine), LIFE)
            self.assertEqual([line["type"] for line in mine[:2]], ["Submitted", "Placed"])
            self.assertEqual([line["position"] for line in mine], [event["position"] for event in world.events(job)])


if __name__ == "__main__":
    unittest.main()
