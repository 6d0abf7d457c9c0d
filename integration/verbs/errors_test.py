"""Every public error path: its exit code and its exact words. 0 done, 1 failed, 2 usage, 101 not finished, 102 not
found, 106 no server; what a job's own end gives is in ends_test."""
import unittest

from world import CellTest, free_port

# A job file, and what is said of it.
FILES = [
    ("name: a\nreplicsa: 2\ncommand: [x]\n", "job.yaml:2: unknown key 'replicsa'; did you mean 'replicas'?"),
    ("secrets: {A: b/c}\ncommand: [x]\n", "job.yaml:1: 'secrets' is planned and not served yet by this release"),
    ("image: ubuntu\ncommand: [x]\n", "job.yaml:1: 'image: ubuntu' is planned and not served yet by this release"),
    ("resources: {gpu: 0.5}\ncommand: [x]\n", "job.yaml:1: 'gpu below 1' is planned and not served yet by this release"),
    ("replicas: x\ncommand: [x]\n", "job.yaml:1: 'replicas': 'x' is not a whole number from 1 to 8192"),
    ("replicas: 10000\ncommand: [x]\n", "job.yaml:1: 'replicas': '10000' is not a whole number from 1 to 8192"),
    ("resources: {cpu: -1}\ncommand: [x]\n",
     "job.yaml:1: 'cpu': '-1' is not a number of CPUs; write 4, 0.5 or 500m"),
    ("time_limit: soon\ncommand: [x]\n",
     "job.yaml:1: 'time_limit': 'soon' is not a time; write 250ms, 30s, 10m, 1h30m, 7d or a number of seconds"),
    ("array: {count: 0}\ncommand: [x]\n", "job.yaml:1: 'count': '0' is not a whole number from 1 to 1000000"),
    ("name: a\n", "job.yaml:1: the job has no 'command' and no 'script'"),
    ("name: a\ncommand: [x]\ntasks: [{name: b, command: [x]}]\n",
     "job.yaml:2: 'command' belongs into each task, since there are 'tasks'"),
    ("name: [\n", "job.yaml:2: not YAML: end of sequence flow not found"),
    ("", "job.yaml: has no job"),
    ("name: '12'\ncommand: [x]\n", "jobs[0].spec.name: '12' is not allowed; must be 1 to 128 letters, digits, '.', '_' "
                                   "or '-', and not only digits"),
    ("signal: FOO\ncommand: [x]\n",
     "jobs[0].spec.signal: 'FOO' is not allowed; must be a signal's name, as in TERM, INT, USR1"),
    ("queue: a//b\ncommand: [x]\n", "jobs[0].spec.queue: 'a//b' is not allowed; must be 1 to 8 levels of 1 to 64 "
                                    "letters, digits, '.', '_' or '-', as in research/vision"),
    ("success: foo\ncommand: [x]\n",
     "jobs[0].spec.success: 'foo' is not allowed; must be all, or the name of a task"),
]


class ErrorsTest(CellTest):
    shared = True

    def refused(self, code, words, *arguments):
        with self.subTest(arguments):
            self.assertRefused(code, f"muster: {words}", *arguments)

    def test_job_files(self):
        for text, words in FILES:
            (self.world.dir / "job.yaml").write_text(text)
            with self.subTest(text):
                self.refused(2, words, "submit", "job.yaml")

    def test_submit(self):
        self.refused(2, "nothing to submit: give a job file, or `-- command`", "submit")
        self.refused(2, "nofile.yaml: No such file or directory", "submit", "nofile.yaml")
        for reference in ("999", "nobody"):
            self.refused(102, f"after.ok: there is no job '{reference}' of user '{self.user()}'",
                         "submit", "--after-ok", reference, "--", "true")
        (self.world.dir / "two.yaml").write_text("command: [x]\n---\ncommand: [x]\n")
        self.refused(2, "--key names one job, and these are 2; submit them one by one",
                     "submit", "--key", "k", "two.yaml")
        self.assertEqual(self.world.json_lines("ls", "--all", "--state", "PENDING"), [], "refused whole")

    def user(self):
        job = self.world.submit("--memory", "16Mi", "--", "true")
        self.world.until_terminal(job)
        return self.world.job(job)["user"]

    def test_no_such_job(self):
        for verb in ("show", "why", "logs", "events", "wait", "cancel", "hold", "release", "requeue", "retry"):
            self.refused(102, "no job 99999", verb, "99999")
        self.refused(102, "no job 99999", "update", "99999", "priority=1")
        self.refused(102, "no job named 'nobody'", "show", "nobody")
        self.refused(2, "'@' names no job; write 12, 12[3] (an element), 12.actor.0 (a member), 12@2 (an attempt) or "
                        "the job's name", "show", "@")

    def test_job_that_has_ended(self):
        job = self.world.submit("--memory", "16Mi", "--", "true")
        self.world.until_terminal(job)
        for verb in ("cancel", "hold", "release", "requeue"):
            self.refused(1, f"job {job} has ended: SUCCEEDED", verb, job)
        self.refused(1, f"job {job} has ended: SUCCEEDED", "update", job, "priority=3")
        self.refused(102, f"no job {job}[3]", "show", f"{job}[3]")
        self.refused(102, f"job {job} has no attempt 5; its last is 1", "logs", f"{job}@5")
        self.refused(2, "rank: 7 is not allowed; must be 0 to 0, or -1 for all", "logs", job, "--rank", "7")
        self.refused(2, "--rank x: must be a rank, as in 0, or all", "logs", job, "--rank", "x")

    def test_job_that_waits(self):
        job = self.world.submit("--memory", "16Mi", "--hold", "--", "true")
        self.refused(1, f"job {job} is PENDING; only a job that has ended can be retried", "retry", job)
        self.refused(1, f"job {job} is PENDING; only a gang that has places can be requeued", "requeue", job)
        self.refused(1, f"job {job} has no output: it has not been placed; it is PENDING", "logs", job)
        self.refused(101, f"job {job} has not ended: PENDING", "wait", job, "--timeout", "200ms")
        self.refused(2, "update: 'colour' is not allowed; must be priority, time_limit, expected, queue or "
                        "array.running", "update", job, "colour=red")
        self.refused(2, "'priority' must be KEY=VALUE, as in priority=5", "update", job, "priority")
        self.refused(2, "update.priority: 'x' is not allowed; must be -1000000 to 1000000",
                     "update", job, "priority=x")
        self.refused(2, f"job {job} is no array", "update", job, "array.running=3")
        self.world.done("cancel", job)
        self.refused(103, f"job {job} CANCELLED: BY_USER", "wait", job)

    def test_array(self):
        array = self.world.submit("--memory", "16Mi", "--hold", "--array", "3", "--", "true")
        self.refused(1, f"job {array} is an array; name an element, as in {array}[0]", "logs", array)
        self.refused(1, f"job {array} is an array; requeue one element, as in {array}[0]", "requeue", array)
        self.refused(2, f"job: '{array}[0]' is not allowed; retry takes a whole job", "retry", f"{array}[0]")
        self.refused(102, f"no job {array}[7]", "show", f"{array}[7]")
        self.world.done("cancel", array)

    def test_operate(self):
        self.refused(102, "no node nx", "node", "show", "nx")
        self.refused(102, "no node 'nx'", "node", "drain", "nx")
        self.refused(102, "no queue 'nx' has been set", "queue", "rm", "nx")
        self.refused(2, "limit.gpu: 'x' is not a number of GPUs; write 8", "queue", "set", "q", "limit.gpu=x")
        self.refused(2, "queue.limit[0].resource: 'disk' is not allowed; must be cpu, memory, gpu or gpu.MODEL",
                     "queue", "set", "q", "limit.disk=3")
        self.refused(2, "node_lost: 1 ms is not allowed; it must be at least the lease, 500 ms",
                     "policy", "set", "node_lost=1ms")
        self.refused(2, "policy key 'foo' is unknown; this release has: node_lost", "policy", "set", "foo=1")
        self.refused(102, "there is no embedded log at nolog", "log", "cat", "--log", "embedded:nolog")

    def test_no_server(self):
        address = f"127.0.0.1:{free_port()}"
        words = f"no server answers at {address}; start one with `muster local --dir DIR`, or set MUSTER_SERVER"
        self.refused(106, words, "ls", "--server", address)
        self.refused(106, words, "submit", "--server", address, "--patience", "300ms", "--", "true")

    def test_planned_verbs(self):
        for verb in ("exec", "snapshot", "autoscaler", "plan"):
            self.refused(2, f"'{verb}' is planned and not served yet by this release", verb)

    def usage(self, verb, words, *arguments):
        with self.subTest(arguments):
            self.assertRefused(2, f"muster {verb}: {words} (`muster {verb} --help` says more)", *arguments)

    def test_usage(self):
        self.usage("show", "ID is required", "show")
        self.usage("submit", "unknown option '--gpus'; did you mean '--gpu'?", "submit", "--gpus", "8", "--", "true")
        self.usage("ls", "-o xml: must be text or json", "ls", "-o", "xml")
        self.usage("agent", "--server: 'foo' is not HOST:PORT", "agent", "--server", "foo", "--dir", "nz")

    def daemon_refused(self, code, words, *arguments):
        """A daemon logs why it won't start as its last line."""
        with self.subTest(arguments):
            seen = self.world.muster(*arguments)
            self.assertEqual(seen.code, code, seen.err)
            last = seen.err.splitlines()[-1]
            self.assertTrue(last.endswith(f" {words}"), last)

    def test_daemons(self):
        world, address = self.world, f"127.0.0.1:{free_port()}"
        log, server = world.log, ("--dir", world.dir / "another", "--listen", address)
        self.daemon_refused(1, f"embedded log {log.partition(':')[2]} is in use by another server (pid "
                               f"{world.server_process.pid}). Stop it, or use another directory",
                            "server", "--log", log, *server)
        self.daemon_refused(1, f"--dir {world.dir}/server: another server uses it; give each server a directory of its own",
                            "server", "--log", "embedded:l3", "--dir", world.dir / "server", "--listen", address)
        self.daemon_refused(1, f"--listen {world.address}: the address can't be bound; is another server running there?",
                            "server", "--log", "embedded:l2", "--dir", "d2", "--listen", world.address)
        self.daemon_refused(1, "--listen foo: must be HOST:PORT, as in 127.0.0.1:7070",
                            "server", "--log", "embedded:l2", "--dir", "d2", "--listen", "foo")
        self.daemon_refused(2, f"another agent runs in {world.dir}/n0: stop it, or choose another --dir",
                            "agent", "--server", world.address, "--dir", world.dir / "n0", "--name", "n0")


if __name__ == "__main__":
    unittest.main()
