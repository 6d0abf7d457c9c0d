"""How a job ends: exit codes, signals, limits, retries, and what one member's failure does to its gang."""
import unittest

from world import CellTest


class EndsTest(CellTest):
    shared = True
    agent_options = ("--cpu", "8", "--memory", "8Gi")

    def run_job(self, *arguments):
        job = self.world.submit("--memory", "64Mi", *arguments)
        return job, self.world.until_terminal(job)

    def end_of(self, job):
        return job["state"], job["reason"], job["job_exit"]

    def test_exit_codes(self):
        for code, wanted in ((0, ("SUCCEEDED", "EXIT", 0)), (3, ("FAILED", "EXIT", 3))):
            job, ended = self.run_job("--", "sh", "-c", f"exit {code}")
            self.assertEqual(self.end_of(ended), wanted)
            self.assertEqual(self.world.muster("wait", job).code, code)

    def test_signal(self):
        job, ended = self.run_job("--", "sh", "-c", "kill -9 $$")
        self.assertEqual(self.end_of(ended)[:2], ("FAILED", "SIGNAL"))
        self.assertEqual(self.world.muster("wait", job).code, 137)

    def test_one_member_stops_its_gang(self):
        """The gang ends with the root cause's code, not with that of the members stopped for it."""
        _, ended = self.run_job("--replicas", "3", "--", "sh", "-c", "[ $RANK = 1 ] && exit 9; sleep 600")
        self.assertEqual(self.end_of(ended), ("FAILED", "EXIT", 9))
        self.assertEqual(len(ended["attempts"]), 1)
        self.assertEqual(ended["attempts"][0]["members"][1]["exit"], 9)

    def test_time_limit(self):
        job, ended = self.run_job("--time-limit", "1s", "--grace", "200ms", "--", "sleep", "600")
        self.assertEqual(self.end_of(ended)[:2], ("FAILED", "TIME_LIMIT"))
        self.assertEqual(self.world.muster("wait", job).code, 100)

    def test_grace(self):
        """The signal that was asked for, then time to use it."""
        job = self.world.submit("--memory", "64Mi", "--signal", "INT", "--grace", "60s", "--", "sh", "-c",
                                "trap 'echo saved; exit 5' INT; echo ready; while :; do sleep 0.1; done")
        self.world.until_state(job, "RUNNING")
        self.world.wait_for_output(job, "ready")
        self.world.done("cancel", job)
        ended = self.world.until_terminal(job)
        self.assertEqual(self.end_of(ended)[:2], ("CANCELLED", "BY_USER"))
        self.assertIn("saved", self.world.done("logs", job))
        self.assertEqual(ended["attempts"][0]["members"][0]["exit"], 5)
        self.assertEqual(self.world.muster("wait", job).code, 103)

    def test_kill_after_grace(self):
        job = self.world.submit("--memory", "64Mi", "--grace", "300ms", "--", "sh", "-c",
                                "trap '' TERM; echo ready; while :; do sleep 0.1; done")
        self.world.wait_for_output(job, "ready")
        self.world.done("cancel", job)
        self.assertEqual(self.end_of(self.world.until_terminal(job))[:2], ("CANCELLED", "BY_USER"))

    def test_out_of_memory(self):
        notes = self.world.json("node", "show", "n0")["notes"]
        if any("memory" in note for note in notes):
            self.skipTest(f"this host has no memory limit: {notes}")
        _, ended = self.run_job("--", "python3", "-c", "x = bytearray(512 << 20); print(len(x))")
        self.assertEqual(self.end_of(ended)[:2], ("FAILED", "OUT_OF_MEMORY"))

    def test_retries(self):
        spec = self.world.dir / "retries.yaml"
        spec.write_text("name: third-time\nresources: {memory: 64Mi}\nretries: {own: 2}\n"
                        "command: [sh, -c, 'echo $MUSTER_ATTEMPT; [ $MUSTER_ATTEMPT = 3 ]']\n")
        job = self.world.submit(spec)
        ended = self.world.until_terminal(job)
        self.assertEqual(self.end_of(ended), ("SUCCEEDED", "EXIT", 0))
        self.assertEqual([attempt["attempt"] for attempt in ended["attempts"]], [1, 2, 3])
        positions = [attempt["position"] for attempt in ended["attempts"]]
        self.assertEqual(positions, sorted(set(positions)), "a fence never goes back")
        self.assertEqual(self.world.done("logs", f"{job}@2"), "2\n")

    def test_restart_in_its_place(self):
        """on_failure: restart runs one member again under the same fence; the others don't notice."""
        spec = self.world.dir / "restart.yaml"
        spec.write_text(f"""
name: restart
success: learner
tasks:
  - name: learner
    resources: {{memory: 64Mi}}
    command: [sh, -c, 'while [ ! -e {self.world.dir}/second ]; do sleep 0.05; done']
  - name: actor
    resources: {{memory: 64Mi}}
    on_failure: restart
    command: [sh, -c, 'if [ -e {self.world.dir}/first ]; then touch {self.world.dir}/second; sleep 600; fi;
      touch {self.world.dir}/first; exit 1']
""")
        ended = self.world.until_terminal(self.world.submit(spec))
        self.assertEqual(self.end_of(ended), ("SUCCEEDED", "EXIT", 0))
        self.assertEqual(len(ended["attempts"]), 1)

    def test_ignored_failure(self):
        spec = self.world.dir / "ignore.yaml"
        spec.write_text("""
name: ignore
success: main
tasks:
  - {name: main, resources: {memory: 64Mi}, command: [sleep, '0.5']}
  - {name: helper, resources: {memory: 64Mi}, command: ['false'], on_failure: ignore}
""")
        ended = self.world.until_terminal(self.world.submit(spec))
        self.assertEqual(self.end_of(ended), ("SUCCEEDED", "EXIT", 0))

    def test_command_not_found(self):
        _, ended = self.run_job("--", "/no/such/program")
        self.assertEqual(self.end_of(ended)[0], "FAILED")


if __name__ == "__main__":
    unittest.main()
