#!/usr/bin/env python3
"""A real Kafka broker for tests: one KRaft node (broker and controller) on free loopback ports.

As a program:   kafka.py run -- COMMAND...   starts a broker, runs COMMAND with MUSTER_KAFKA=127.0.0.1:PORT in its
                environment, stops the broker and ends with the command's exit code. On SIGUSR1 (to MUSTER_KAFKA_PID)
                it kills the broker with SIGKILL and starts it again.
                kafka.py jars                only fetches the jars.
As a module:    with Broker(directory) as broker: ... broker.address ... broker.kill(); broker.start()

The jars come from Maven (pom.xml) into .cache/kafka under the repository's root, and are kept there. A broker keeps its
ports and its data over kill() and start(); its data lies in the directory that it was given. It ends with the thread
that started it, so that a test that is killed leaves none behind.
"""

import ctypes
import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CACHE = HERE.parent.parent / ".cache" / "kafka"
CLUSTER_ID = "TXVzdGVyVGVzdENsdXN0ZQ"  # 16 bytes in base64
READY_SECONDS = 120

SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={directory}/data
num.partitions=1
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
controller.quorum.election.timeout.ms=500
controller.quorum.fetch.timeout.ms=1000
"""


PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class KafkaError(Exception):
    """What was wrong, where, and what to do."""


def jars():
    """The folder of the broker's jars; fetches them if they are not there for this pom.xml."""
    if shutil.which("java") is None:
        raise KafkaError("java is not installed, and the Kafka broker needs it: apt-get install openjdk-17-jre-headless")
    digest = hashlib.sha256((HERE / "pom.xml").read_bytes()).hexdigest()
    done = CACHE / "pom.sha256"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:  # two tests may start at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_text() == digest:
            return CACHE / "jars"
        if shutil.which("mvn") is None:
            raise KafkaError("mvn is not installed, and fetches the Kafka broker's jars: apt-get install maven")
        shutil.rmtree(CACHE / "jars", ignore_errors=True)
        command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies",
                   f"-DoutputDirectory={CACHE / 'jars'}"]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ran.returncode != 0:
            raise KafkaError(f"cannot fetch the Kafka broker's jars ({' '.join(command)}):\n{ran.stdout[-2000:]}")
        done.write_text(digest)
    return CACHE / "jars"


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Broker:
    """One broker. Not started by the constructor; `with` starts and stops it."""

    def __init__(self, directory, memory="512m"):
        self.directory = pathlib.Path(directory)
        self.memory = memory
        self.port, self.controller_port = free_ports(2)
        self.process = None

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def log_file(self):
        return self.directory / "broker.log"

    def start(self):
        """Starts it, on what an earlier start left, and returns when it answers."""
        classpath = f"{jars()}/*"
        properties = self.directory / "server.properties"
        if not properties.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            properties.write_text(SETTINGS.format(port=self.port, controller_port=self.controller_port,
                                                  directory=self.directory))
            self._java(classpath, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties))
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                ["java", f"-Xmx{self.memory}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *self._java_logging(),
                 "-cp", classpath, "kafka.Kafka", str(properties)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=die_with_parent)
        self._wait_ready()

    def kill(self):
        """As a crash: SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self):
        self._end(signal.SIGTERM)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    @staticmethod
    def _java_logging():
        return ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
                "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info"]

    def _java(self, classpath, *command):
        ran = subprocess.run(["java", *self._java_logging(), "-cp", classpath, *command], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ran.returncode != 0:
            raise KafkaError(f"{' '.join(command)} failed:\n{ran.stdout[-2000:]}")

    def _end(self, how):
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def _wait_ready(self):
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise KafkaError(f"the Kafka broker ended with {self.process.returncode}; the end of {self.log_file}:\n"
                                 + self._log_end())
            if self._answers():
                return
            time.sleep(0.1)
        self.kill()
        raise KafkaError(f"the Kafka broker was not ready in {READY_SECONDS} s; the end of {self.log_file}:\n"
                         + self._log_end())

    def _log_end(self):
        return self.log_file.read_text(errors="replace")[-2000:]

    def _answers(self):
        """Whether a Metadata request (version 1, no topics) names a broker: it is registered and unfenced."""
        body = b"\x00\x03\x00\x01" + b"\x00\x00\x00\x01" + b"\x00\x05ready" + b"\x00\x00\x00\x00"
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as link:
                link.sendall(len(body).to_bytes(4, "big") + body)
                reply = b""
                while len(reply) < 12:  # size, correlation id, number of brokers
                    chunk = link.recv(4096)
                    if not chunk:
                        return False
                    reply += chunk
        except OSError:
            return False
        return int.from_bytes(reply[8:12], "big") >= 1


def run(command):
    with tempfile.TemporaryDirectory(prefix="muster-kafka-") as directory:
        with Broker(directory) as broker:
            def crash(*_):
                broker.kill()
                broker.start()

            signal.signal(signal.SIGUSR1, crash)
            environment = dict(os.environ, MUSTER_KAFKA=broker.address, MUSTER_KAFKA_PID=str(os.getpid()))
            try:
                return subprocess.run(command, env=environment).returncode
            except OSError as error:
                raise KafkaError(f"cannot run {command[0]}: {error.strerror}") from error


def main(arguments):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the broker is stopped on the way out
    try:
        if arguments[:1] == ["jars"] and len(arguments) == 1:
            print(jars())
            return 0
        if arguments[:2] == ["run", "--"] and len(arguments) > 2:
            return run(arguments[2:])
    except KafkaError as error:
        print(f"kafka.py: {error}", file=sys.stderr)
        return 1
    print("use: kafka.py run -- COMMAND... | kafka.py jars", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
