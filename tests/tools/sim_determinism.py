"""Same seed, two processes, different environment, directory and address-space layout: same fingerprint, for every
scenario of the program but the one that strays on purpose."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from sim import SimTest  # noqa: E402

SEEDS = range(1, 6)
# Ends by a signal, ends after more steps than all others together, or differs on purpose.
LEFT_OUT = {"test-crash", "test-livelock", "test-spin", "test-stray"}


class Determinism(SimTest):
    def fingerprint(self, scenario, seed, **more):
        answer = self.sim("run", scenario, "--seed", seed, "--json", **more)
        self.assertIn(answer.code, (0, 1), answer)
        document = answer.json()
        self.assertRegex(document["fingerprint"], r"^[0-9a-f]{32}$")
        return document["fingerprint"], document["steps"], document["choices"], document["time_ns"]

    def test_environment_directory_and_layout_do_not_matter(self):
        names = [s["name"] for s in self.sim("list", "scenarios", "--json").json()["scenarios"]]
        self.assertIn("test-lost-update", names)
        fixed = ["setarch", "-R"]
        self.assertEqual(subprocess.run([*fixed, "true"]).returncode, 0, "setarch -R does not work here")
        other = {"PATH": "/usr/bin", "LANG": "de_DE.UTF-8", "TZ": "Asia/Tokyo", "HOME": "/", "UCX_TLS": "self",
                 "MALLOC_ARENA_MAX": "1", "PADDING": "x" * 50_000}
        with tempfile.TemporaryDirectory() as elsewhere:
            for name in names:
                if name in LEFT_OUT:
                    continue
                for seed in SEEDS:
                    with self.subTest(scenario=name, seed=seed):
                        first = self.fingerprint(name, seed)
                        self.assertEqual(first, self.fingerprint(name, seed, env=other, cwd=elsewhere))
                        self.assertEqual(first, self.fingerprint(name, seed, prefix=fixed, env=dict(os.environ)))

    def test_the_scenario_that_strays_is_noticed_by_a_single_run_with_a_trace(self):
        # The second run of the process logs other numbers.
        answer = self.sim("run", "test-stray", "--trace", "t.jsonl")
        self.assertEqual(answer.code, 4, answer)
        self.assertIn("did not repeat itself", answer.out)
        self.assertEqual(self.left(), [])

    def test_seeds_differ(self):
        seen = {self.sim("run", "test-right", "--set", "times=50", "--seed", seed, "--json").json()["choices"]
                for seed in range(1, 20)}
        self.assertGreater(len(seen), 5)


if __name__ == "__main__":
    unittest.main()
