"""Each bench runs, small, on the embedded log, and prints its figures. Nothing is asserted of how good they are."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MUSTER = os.environ.get("MUSTER_BINARY", str(ROOT / "build" / "muster"))
DEADLINE_S = 120


def muster(*arguments, **more):
    return subprocess.run([MUSTER, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, **more)


class BenchTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="muster-bench-test-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def bench(self, name, *arguments):
        ran = muster("bench", name, *arguments, env=dict(os.environ, TMPDIR=str(self.directory)))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        lines = ran.stdout.splitlines()
        self.assertEqual(len(lines), 1, ran.stdout)
        self.assertEqual(list(self.directory.glob("muster-bench-*")), [], "it leaves nothing behind")
        return json.loads(lines[0])

    def check(self, figures, *names):
        for name in names:
            value = figures
            for part in name.split("."):
                self.assertIn(part, value, f"{name} of {figures}")
                value = value[part]
            self.assertGreater(value, 0, f"{name} of {figures}")

    def test_submit(self):
        figures = self.bench("submit", "--jobs", "250", "--in-flight", "2")
        self.check(figures, "per_s", "raw.per_s", "ratio")
        self.assertEqual((figures["schema"], figures["bench"], figures["jobs"]), (1, "submit", 250))

    def test_latency(self):
        self.check(self.bench("latency", "--jobs", "5"), "p50_ms", "p99_ms", "placed_p50_ms", "placed_p99_ms",
                   "raw.p50_ms", "raw.p99_ms", "ratio", "ratio_placed")

    def test_replay(self):
        figures = self.bench("replay", "--jobs", "500")
        self.check(figures, "per_s", "rocksdb_per_s", "raw.per_s", "ratio", "ratio_rocksdb")
        self.assertGreaterEqual(figures["records"], 2500)
        self.check(self.bench("replay", "--jobs", "10", "--log", "memory:"), "per_s", "raw.per_s")

    def test_restart(self):
        self.check(self.bench("replay", "--restart", "100", "200"), "restart_s", "live", "ended", "tail")

    def test_jobs(self):
        self.check(self.bench("jobs", "--jobs", "10"), "per_s", "raw.per_s", "ratio")

    def test_retention(self):
        figures = self.bench("retention", "--jobs", "100", "--warm-up", "20")
        self.check(figures, "before.per_s", "before.rss_bytes", "after.per_s", "after.rss_bytes", "ratio_rate",
                   "ratio_memory")

    def test_a_named_directory_is_only_used(self):
        named = self.directory / "disk"
        self.bench("submit", "--jobs", "10", "--log", f"embedded:{named}")
        self.assertEqual(list(named.iterdir()), [])

    def test_memory_has_no_raw_log(self):
        ran = muster("bench", "submit", "--log", "memory:")
        self.assertEqual(ran.returncode, 2)
        self.assertEqual(ran.stderr, "muster: --log memory: there is no log below it to compare with; name embedded: "
                                     "or kafka:BROKERS/PREFIX\n")


if __name__ == "__main__":
    unittest.main()
