"""A cell of real processes for one test: servers, agents and the command line, on a log of the test's choice.

A World owns a temporary directory and every process that was started for it, members of gangs included: leaving
it ends them all and removes the directory. Nothing here asserts on time; waiting has one generous deadline.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from kafka import kafka

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUSTER = os.environ.get("MUSTER_BINARY", str(ROOT / "build" / "muster"))
DEADLINE_S = 120
LEASE = "500ms"
TERMINAL = ("SUCCEEDED", "FAILED", "CANCELLED")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_until(condition, what, deadline_s=DEADLINE_S):
    """Returns the condition's first true value."""
    deadline = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {deadline_s} s for {what}")
        time.sleep(0.05)


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str

    def objects(self):
        """The JSON objects of the output, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Process:
    """A daemon that can be killed and started again with the same arguments."""

    def __init__(self, name, arguments, directory, env):
        self.name, self.arguments, self.env = name, arguments, env
        self.output = directory / f"{name}.out"
        self.kills = 0
        self._popen = None
        self.start()

    @property
    def pid(self):
        return self._popen.pid

    def start(self):
        with self.output.open("ab") as output:
            self._popen = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL, stdout=output,
                                           stderr=subprocess.STDOUT, env=self.env, start_new_session=True)

    def running(self):
        return self._popen.poll() is None

    def kill(self):
        """SIGKILL; returns once it is gone."""
        self._popen.kill()
        self._popen.wait()
        self.kills += 1

    def stop(self):
        """SIGTERM; returns its exit status."""
        self._popen.terminate()
        return self._popen.wait(DEADLINE_S)

    def wait(self):
        return self._popen.wait(DEADLINE_S)

    def text(self):
        return self.output.read_text(errors="replace")


class World:
    def __init__(self, log=None):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-world-"))
        self.log = log or f"embedded:{self.dir}/log"
        self.address = f"127.0.0.1:{free_port()}"
        self.env = dict(os.environ, MUSTER_SERVER=self.address, MUSTER_TEST_WORLD=str(self.dir))
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.show_outputs()
        self.close()

    def close(self):
        for process in self.processes:
            if process.running():
                process.kill()
        for _ in range(100):  # what is killed may be the parent of what is not yet seen
            left = self.living()
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)
        shutil.rmtree(self.dir, ignore_errors=True)

    def show_outputs(self):
        for process in self.processes:
            tail = process.text().splitlines()[-40:]
            print(f"--- {process.name}, the last {len(tail)} lines", *tail, sep="\n", file=sys.stderr)

    def living(self):
        """Pids of all processes of this world, members and supervisors included; zombies aren't."""
        mark, found = str(self.dir).encode(), []
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if pathlib.Path(entry.path, "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                    continue
                seen = pathlib.Path(entry.path, "cmdline").read_bytes() + pathlib.Path(entry.path, "environ").read_bytes()
                if mark in seen or mark.decode() in os.readlink(entry.path + "/cwd"):
                    found.append(int(entry.name))
            except (OSError, IndexError):
                continue
        return found

    # ---- daemons ----

    def start(self, name, *arguments):
        process = Process(name, [MUSTER, *map(str, arguments)], self.dir, self.env)
        self.processes.append(process)
        return process

    def server(self, *extra):
        process = self.start("server", "server", "--log", self.log, "--dir", self.dir / "server",
                             "--listen", self.address, "--lease", LEASE, *extra)
        self.until_served()
        return process

    def agent(self, name, *extra):
        return self.start(name, "agent", "--server", self.address, "--dir", self.dir / name, "--name", name, *extra)

    def agents(self, count, *extra):
        """n0, n1, …; returns when all are nodes in service."""
        started = [self.agent(f"n{i}", *extra) for i in range(count)]
        self.until_nodes(*[agent.name for agent in started])
        return started

    def until_served(self):
        def answers():
            for process in self.processes:
                if not process.running():
                    raise AssertionError(f"{process.name} has ended:\n{process.text()[-2000:]}")
            return self.muster("ls").code == 0
        wait_until(answers, "the server to answer")

    def until_nodes(self, *names):
        def connected():
            seen = self.muster("node", "ls", "-o", "json")
            return seen.code == 0 and {node["name"] for node in seen.objects() if node["connected"]} >= set(names)
        wait_until(connected, f"nodes {names}")

    # ---- the command line ----

    def muster(self, *arguments, cwd=None, input_text=None):
        done = subprocess.run([MUSTER, *map(str, arguments)], env=self.env, cwd=cwd or self.dir, timeout=DEADLINE_S,
                              stdin=subprocess.DEVNULL if input_text is None else None, input=input_text,
                              capture_output=True, text=True)
        return Result(done.returncode, done.stdout, done.stderr)

    def done(self, *arguments, **options):
        """Runs a verb that must succeed; its output."""
        result = self.muster(*arguments, **options)
        if result.code != 0:
            raise AssertionError(f"muster {' '.join(map(str, arguments))}: exit {result.code}\n{result.out}{result.err}")
        return result.out

    def json(self, *arguments):
        """The one object that a reading verb prints with -o json."""
        return json.loads(self.done(*arguments, "-o", "json"))

    def json_lines(self, *arguments):
        return [json.loads(line) for line in self.done(*arguments, "-o", "json").splitlines()]

    def submit(self, *arguments, **options):
        """The new job's id, as text."""
        return self.done("submit", *arguments, **options).strip()

    def job(self, job):
        return self.json("show", job)

    def until_state(self, job, *states):
        seen = {}

        def reached():
            shown = self.muster("show", job, "-o", "json")
            if shown.code == 106:  # a server that was killed a moment ago
                return False
            if shown.code != 0:
                raise AssertionError(f"muster show {job}: exit {shown.code}\n{shown.err}")
            seen.update(json.loads(shown.out))
            return seen["state"] in states
        try:
            wait_until(reached, f"job {job} to be {' or '.join(states)}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {json.dumps(seen)}") from None
        return seen

    def until_terminal(self, job):
        return self.until_state(job, *TERMINAL)

    def wait_for_output(self, job, text):
        wait_until(lambda: text in self.muster("logs", job).out, f"job {job} to print {text!r}")

    def events(self, job):
        """The job's records from the log, in order."""
        return self.json_lines("events", job)

    def exported(self):
        """Every record of the log: {position, type, key, record}."""
        return [json.loads(line) for line in self.done("log", "export").splitlines()]

    def verify(self):
        """Has the log folded again from its beginning; returns the digest that both agree on."""
        seen = self.json("log", "verify")
        if seen["live"] != seen["replayed"]:
            raise AssertionError(f"the replayed state is another: {seen}")
        return seen["live"]


@contextlib.contextmanager
def world_on_kafka(cell):
    """A World whose log is a topic of a real broker of its own, `world.broker`."""
    with tempfile.TemporaryDirectory(prefix="muster-kafka-") as directory, kafka.Broker(directory) as broker:
        with World(f"kafka:{broker.address}/{cell}") as world:
            world.broker = broker
            yield world


class CellTest(unittest.TestCase):
    """A test on a fresh World, `self.world`, with a server and `self.agent_count` agents declared as `agent_options`."""

    agent_count = 1
    agent_options = ("--cpu", "4", "--memory", "4Gi")
    shared = False  # True: one World for all tests of the class, which then must not disturb each other

    @classmethod
    def setUpClass(cls):
        if cls.shared:
            cls.world = cls.make_world()

    @classmethod
    def tearDownClass(cls):
        if cls.shared:
            cls.world.close()

    @classmethod
    def make_world(cls):
        world = World()
        try:
            world.server_process = world.server()
            world.agent_processes = world.agents(cls.agent_count, *cls.agent_options)
        except BaseException:
            world.show_outputs()
            world.close()
            raise
        return world

    def setUp(self):
        if not self.shared:
            self.world = self.make_world()
            self.addCleanup(self.world.close)
            self.addCleanup(self._show_if_failed)

    def _show_if_failed(self):
        outcome = self._outcome.result
        if any(test is self for test, _ in outcome.failures + outcome.errors):
            self.world.show_outputs()

    def assertRefused(self, code, message, *arguments, **options):
        """The verb exits with the code and says exactly this on stderr."""
        seen = self.world.muster(*arguments, **options)
        self.assertEqual((seen.code, seen.err.strip()), (code, message), f"stdout: {seen.out}")
