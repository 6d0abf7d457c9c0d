"""What runs outlives the agent, and dies with its supervisor."""
import os
import pathlib
import signal
import time
import unittest

from world import CellTest, wait_until


def children(pid):
    return [int(child) for task in os.scandir(f"/proc/{pid}/task")
            for child in pathlib.Path(task.path, "children").read_text().split()]


class AdoptionTest(CellTest):
    def member_running(self, *extra):
        """A job of one member that says when it runs, and ends when told: (job, the member's pid, its file)."""
        file = self.world.dir / "pid"
        script = f"echo $$ >> {file}; while [ ! -e {self.world.dir}/end ]; do sleep 0.05; done; exit 7"
        job = self.world.submit(*extra, "--memory", "64Mi", "--", "sh", "-c", script)
        self.world.until_state(job, "RUNNING")
        wait_until(lambda: file.exists() and file.read_text().endswith("\n"), "the member to run")
        return job, int(file.read_text().split()[-1]), file

    def end_member(self):
        (self.world.dir / "end").touch()

    def test_agent_restarted(self):
        job, pid, file = self.member_running()
        agent = self.world.agent_processes[0]
        agent.kill()
        os.kill(pid, 0)
        agent.start()
        self.world.until_nodes("n0")
        self.end_member()
        ended = self.world.until_terminal(job)
        self.assertEqual((ended["state"], ended["job_exit"], len(ended["attempts"])), ("FAILED", 7, 1))
        self.assertEqual(file.read_text().split(), [str(pid)])

    def test_member_ends_while_its_agent_is_down(self):
        job, pid, file = self.member_running()
        agent = self.world.agent_processes[0]
        agent.kill()
        self.end_member()
        wait_until(lambda: pid not in self.world.living(), "the member to end")
        agent.start()
        ended = self.world.until_terminal(job)
        self.assertEqual((ended["state"], ended["job_exit"], len(ended["attempts"])), ("FAILED", 7, 1))
        self.assertEqual(file.read_text().split(), [str(pid)])

    def test_all_of_the_control_plane_down(self):
        job, pid, file = self.member_running()
        for process in self.world.processes:
            process.kill()
        self.end_member()
        wait_until(lambda: pid not in self.world.living(), "the member to end")
        for process in self.world.processes:
            process.start()
        ended = self.world.until_terminal(job)
        self.assertEqual((ended["job_exit"], len(ended["attempts"])), (7, 1))
        self.assertEqual(file.read_text().split(), [str(pid)])
        self.world.verify()

    def test_supervisor_killed(self):
        """Its member dies with it, and is never started again in that attempt; the retry is infrastructure's."""
        job, pid, file = self.member_running()
        supervisor = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(supervisor, signal.SIGKILL)
        wait_until(lambda: pid not in self.world.living(), "the member to die with its supervisor")
        wait_until(lambda: len(self.world.job(job)["attempts"]) == 2, "a second attempt")
        self.world.until_state(job, "RUNNING")
        self.end_member()
        ended = self.world.until_terminal(job)
        self.assertEqual([attempt["end"] for attempt in ended["attempts"]][-1], "FAILED", ended)
        self.assertEqual(ended["job_exit"], 7)

    def test_agent_gone_for_good_frees_nothing_before_the_node_is_lost(self):
        job, _, _ = self.member_running("--cpu", "4")
        agent = self.world.agent_processes[0]
        agent.kill()
        wait_until(lambda: not self.world.json_lines("node", "ls")[0]["connected"], "the node to be unreachable")
        waiting = self.world.submit("--cpu", "4", "--memory", "64Mi", "--", "true")
        time.sleep(1)
        self.assertEqual(self.world.job(job)["state"], "RUNNING")
        self.assertEqual(self.world.job(waiting)["state"], "PENDING")
        agent.start()
        self.end_member()
        self.assertEqual(self.world.until_terminal(job)["job_exit"], 7)
        self.assertEqual(self.world.until_terminal(waiting)["state"], "SUCCEEDED")


if __name__ == "__main__":
    unittest.main()
