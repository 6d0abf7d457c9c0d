"""The crash test: gangs run to their end while server and agents are killed with SIGKILL at random times.

Each member appends its start and its end to a file of its own, named by job, attempt and rank, so that a member
that ran twice, or never, shows. MUSTER_TEST_SEED repeats a run's choices (what is killed when, who has how many
members); the interleaving of the processes remains the machine's.
"""
import collections
import os
import pathlib
import random
import threading
import time
import unittest

from world import World, wait_until, world_on_kafka

GANGS = 200
MEMBERS_MAX = 8
KILLS_MIN = 60
AGENTS = 4

MEMBER = """
file=$MEMBERS/$MUSTER_JOB_ID.$MUSTER_ATTEMPT.$RANK
echo start >> "$file"
sleep $SECONDS_LONG
echo end >> "$file"
"""


class Killer(threading.Thread):
    """Kills one of the processes at a time and starts it again, until told to end."""

    def __init__(self, processes, seed):
        super().__init__(daemon=True)
        self.processes, self.random = processes, random.Random(seed)
        self.kills, self.ended, self.error = 0, threading.Event(), None

    def run(self):
        try:
            while not self.ended.wait(self.random.uniform(0.1, 1.2)):
                # The server is as likely as all agents together.
                victim = self.processes[0] if self.random.random() < 0.5 else self.random.choice(self.processes[1:])
                if not victim.running():
                    raise AssertionError(f"{victim.name} ended by itself:\n{victim.text()[-4000:]}")
                victim.kill()
                self.kills += 1
                time.sleep(self.random.choice([0, 0, self.random.uniform(0, 0.7)]))
                victim.start()
        except BaseException as error:  # shown by the test's own thread
            self.error = error


class CrashTest(unittest.TestCase):
    def test_embedded(self):
        with World() as world:
            self.crash(world)

    def test_kafka(self):
        with world_on_kafka("crash") as world:
            self.crash(world)

    def crash(self, world):
        seed = int(os.environ.get("MUSTER_TEST_SEED", random.randrange(1 << 32)))
        print(f"MUSTER_TEST_SEED={seed}", flush=True)
        self.random, self.world = random.Random(seed), world
        self.members = world.dir / "members"
        self.members.mkdir()
        server = world.server()
        agents = world.agents(AGENTS, "--cpu", "8", "--memory", "8Gi")
        killer = Killer([server, *agents], seed)
        killer.start()
        sizes = self.submit_all(killer)
        wait_until(lambda: killer.kills >= KILLS_MIN or killer.error, f"{KILLS_MIN} kills")
        ended = self.until_all_terminal(sizes, killer)
        killer.ended.set()
        killer.join()
        self.assertIsNone(killer.error)
        print(f"{killer.kills} kills, {server.kills} of them the server's", flush=True)
        self.assertGreaterEqual(killer.kills, KILLS_MIN)
        world.until_served()
        world.until_nodes(*[agent.name for agent in agents])
        self.check_jobs(sizes, ended)
        world.verify()
        self.check_nothing_left(server, agents)

    def submit_all(self, killer):
        """{job: members}. Spread so that the kills hit jobs of every age; asked again, with its key, until answered."""
        sizes = {}
        for number in range(GANGS):
            wait_until(lambda: killer.kills >= number * KILLS_MIN // GANGS - 3 or killer.error, "the next kill")
            self.assertIsNone(killer.error)
            size = self.random.randint(1, MEMBERS_MAX)
            script = self.world.dir / f"gang-{number}.yaml"
            script.write_text(f"name: gang-{number}\nreplicas: {size}\nresources: {{cpu: 1, memory: 16Mi}}\n"
                              f"env: {{MEMBERS: '{self.members}', SECONDS_LONG: '{self.random.uniform(0, 2):.2f}'}}\n"
                              "script: |\n" + "".join(f"  {line}\n" for line in MEMBER.strip().splitlines()))
            job = wait_until(lambda: self.try_submit(number, script), f"gang {number} to be accepted")
            self.assertNotIn(job, sizes, "two keys, one job")
            sizes[job] = size
        return sizes

    def try_submit(self, number, script):
        seen = self.world.muster("submit", "--key", f"crash-{number}", script)
        self.assertIn(seen.code, (0, 106), f"{seen.out}{seen.err}")
        return seen.out.strip() if seen.code == 0 else None

    def until_all_terminal(self, sizes, killer):
        def ended():
            self.assertIsNone(killer.error)
            seen = self.world.muster("ls", "--all", "--limit", "1000", "-o", "json")
            jobs = {str(job["id"]): job for job in seen.objects()} if seen.code == 0 else {}
            terminal = {key: job for key, job in jobs.items() if job["state"] in ("SUCCEEDED", "FAILED", "CANCELLED")}
            return terminal if len(terminal) == len(sizes) else None
        return wait_until(ended, "all gangs to end", deadline_s=300)

    def check_jobs(self, sizes, ended):
        self.assertEqual(sorted(sizes), sorted(ended))
        states = collections.Counter((job["state"], job["reason"]) for job in ended.values())
        self.assertEqual(set(states), {("SUCCEEDED", "EXIT")}, states)
        ran = collections.defaultdict(dict)
        for file in self.members.iterdir():
            job, attempt, rank = file.name.split(".")
            ran[job, int(attempt)][int(rank)] = file.read_text().split()
        for (job, attempt), ranks in ran.items():
            for rank, lines in ranks.items():
                self.assertIn(lines, (["start"], ["start", "end"]), f"rank {rank} of {job}@{attempt} ran more than once")
        for job, size in sizes.items():
            last = self.world.job(job)["attempts"][-1]
            self.assertEqual([member["exit"] for member in last["members"]], [0] * size, last)
            self.assertEqual(ran[job, last["attempt"]], {rank: ["start", "end"] for rank in range(size)}, last)
        attempts = collections.Counter(attempt for _, attempt in ran)
        print(f"{sum(map(len, ran.values()))} members ran; jobs by attempts: {dict(attempts)}", flush=True)

    def check_nothing_left(self, server, agents):
        """What lives is the daemons and their own helpers; once those are stopped, nothing."""
        daemons = {process.pid for process in (server, *agents)}

        def others():
            return [seen for seen in map(describe, self.world.living())
                    if seen is not None and not {seen[0], seen[1]} & daemons]
        try:
            wait_until(lambda: not others(), "supervisors and members to be gone")
        except AssertionError as error:
            raise AssertionError(f"{error}: {others()}") from None
        for process in (*agents, server):
            process.stop()
        wait_until(lambda: not self.world.living(), "the daemons' helpers to be gone")


def describe(pid):
    """(pid, its parent, its command), or None once it has gone."""
    try:
        parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return pid, parent, pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (OSError, IndexError):
        return None


if __name__ == "__main__":
    unittest.main()
