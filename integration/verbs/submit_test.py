"""Every way to submit: a command line, a file, two kinds of tasks, an array, a sweep, dependencies."""
import unittest

from world import CellTest


class SubmitTest(CellTest):
    shared = True
    agent_options = ("--cpu", "8", "--memory", "8Gi", "--gpu", "8", "--gpu-model", "a100", "--label", "rack=r1")

    def file(self, text):
        self.files = getattr(self, "files", 0) + 1
        path = self.world.dir / f"{self.id()}-{self.files}.yaml"
        path.write_text(text)
        return path

    def succeeded(self, job):
        ended = self.world.until_terminal(job)
        self.assertEqual(ended["state"], "SUCCEEDED", ended)
        return ended

    def test_command(self):
        job = self.world.submit("--name", "hello", "--", "echo", "hello", "--not-ours")
        self.assertEqual(self.succeeded(job)["name"], "hello")
        self.assertEqual(self.world.done("logs", job), "hello --not-ours\n")

    def test_environment_of_a_gang(self):
        job = self.world.submit("--replicas", "2", "--gpu", "2", "--", "sh", "-c",
                                "echo $MUSTER_JOB_ID $MUSTER_ATTEMPT $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE "
                                "$MUSTER_TASK $MUSTER_TASK_INDEX $MASTER_ADDR:$MASTER_PORT $MUSTER_HOSTS "
                                "$CUDA_VISIBLE_DEVICES $PET_NNODES $PET_NODE_RANK $MUSTER_FENCE")
        ended = self.succeeded(job)
        seen = [self.world.done("logs", job, "--rank", rank).split() for rank in (0, 1)]
        devices = set()
        for rank, words in enumerate(seen):
            self.assertEqual(words[:8], [job, "1", str(rank), "2", "0", "1", "main", str(rank)])
            self.assertEqual(words[8], seen[0][8])
            self.assertEqual(words[9].split(",")[0], words[8])
            self.assertEqual(len(words[9].split(",")), 2)
            devices |= set(words[10].split(","))
            self.assertEqual(words[11:13], ["2", str(rank)])
            self.assertEqual(words[13].split("-")[0], str(ended["attempts"][0]["position"]))
        self.assertEqual(len(devices), 4, "no device is given twice")

    def test_two_kinds_of_tasks(self):
        job = self.world.submit(self.file("""
name: selfplay
tasks:
  - {name: learner, resources: {cpu: 1, gpu: 2, memory: 64Mi}, command: [sh, -c, 'echo $MUSTER_TASK $RANK; echo $TF_CONFIG']}
  - {name: actor, replicas: 2, resources: {cpu: 500m, memory: 64Mi}, env: {ROLE: player}, command: [sh, -c, 'echo $MUSTER_TASK $MUSTER_TASK_INDEX $RANK $ROLE']}
"""))
        ended = self.succeeded(job)
        members = ended["attempts"][0]["members"]
        self.assertEqual([(member["task"], member["rank"]) for member in members],
                         [("learner", 0), ("actor", 1), ("actor", 2)])
        self.assertEqual(self.world.done("logs", job, "--rank", "2"), "actor 1 2 player\n")
        learner = self.world.done("logs", job, "--rank", "0").splitlines()
        self.assertEqual(learner[0], "learner 0")
        self.assertIn('"learner"', learner[1])

    def test_script_env_and_labels(self):
        job = self.world.submit(self.file("""
name: scripted
resources: {memory: 64Mi}
env: {GREETING: good morning}
labels: {paper: iclr}
script: |
  for i in 1 2; do
    echo "$GREETING $i"
  done
"""))
        self.succeeded(job)
        self.assertEqual(self.world.done("logs", job), "good morning 1\ngood morning 2\n")

    def test_array(self):
        job = self.world.submit(self.file("name: array\nresources: {memory: 64Mi}\narray: {count: 4, running: 2}\n"
                                          "command: [sh, -c, 'echo $MUSTER_ARRAY_INDEX; [ $MUSTER_ARRAY_INDEX != 2 ]']\n"))
        ended = self.world.until_terminal(job)
        self.assertEqual(ended["state"], "FAILED")
        states = [self.world.job(f"{job}[{index}]")["state"] for index in range(4)]
        self.assertEqual(states, ["SUCCEEDED", "SUCCEEDED", "FAILED", "SUCCEEDED"])
        self.assertEqual(self.world.done("logs", f"{job}[3]"), "3\n")

    def test_sweep(self):
        job = self.world.submit(self.file("name: sweep\nresources: {memory: 64Mi}\nsweep: {lr: [0.1, 0.01], seed: 0..2}\n"
                                          "command: [sh, -c, 'echo $lr $seed']\n"))
        self.succeeded(job)
        seen = [self.world.done("logs", f"{job}[{index}]").strip() for index in range(6)]
        self.assertEqual(seen, ["0.1 0", "0.1 1", "0.1 2", "0.01 0", "0.01 1", "0.01 2"])

    def test_dependency_ok(self):
        first = self.world.submit("--name", "prepare", "--hold", "--memory", "64Mi", "--", "true")
        second = self.world.submit(self.file(f"name: train\nresources: {{memory: 64Mi}}\nafter: {{ok: [{first}]}}\ncommand: ['true']\n"))
        third = self.world.submit(self.file("name: report\nresources: {memory: 64Mi}\nafter: {ok: [train]}\ncommand: ['true']\n"))
        self.assertIn("DEPENDENCY", self.world.done("why", second))
        self.world.done("release", first)
        self.succeeded(third)
        placed = [self.world.job(job)["attempts"][0]["position"] for job in (first, second, third)]
        self.assertEqual(placed, sorted(placed))

    def test_dependency_failed(self):
        first = self.world.submit("--memory", "64Mi", "--", "false")
        ok = self.world.submit(self.file(f"name: ok\nresources: {{memory: 64Mi}}\nafter: {{ok: [{first}]}}\ncommand: ['true']\n"))
        after_ok = self.world.submit(self.file(f"name: then\nresources: {{memory: 64Mi}}\nafter: {{ok: [{ok}]}}\ncommand: ['true']\n"))
        any_end = self.world.submit(self.file(f"name: any\nresources: {{memory: 64Mi}}\nafter: {{any: [{first}]}}\ncommand: ['true']\n"))
        self.succeeded(any_end)
        for job in (ok, after_ok):
            ended = self.world.until_terminal(job)
            self.assertEqual((ended["state"], ended["reason"], ended["attempts"]), ("FAILED", "DEPENDENCY", []))

    def test_several_files_and_one_document_each(self):
        answer = self.world.done("submit", *[self.file(f"name: many-{i}\nresources: {{memory: 64Mi}}\ncommand: ['true']\n")
                                             for i in range(3)])
        jobs = answer.split()
        self.assertEqual(len(set(jobs)), 3)
        self.assertEqual([self.succeeded(job)["name"] for job in jobs], ["many-0", "many-1", "many-2"])

    def test_run_attaches_and_ends_as_the_job(self):
        seen = self.world.muster("run", "--memory", "64Mi", "--", "sh", "-c", "echo out; echo err >&2; exit 4")
        self.assertEqual(seen.code, 4)
        self.assertEqual(sorted(seen.out.split()), ["err", "out"])


if __name__ == "__main__":
    unittest.main()
