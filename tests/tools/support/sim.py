"""Calls holdfast-sim as a user does, in a directory of its own, and says what it printed and left behind."""
import json
import os
import shlex
import subprocess
import tempfile
import unittest
from pathlib import Path

# holdfast-sim with the scenarios of broken_scenario.cpp besides its own.
BROKEN = Path(os.environ["HOLDFAST_BIN"]) / "test" / "broken_scenario"


class Answer:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"exit {self.code}\nstdout: {self.out}\nstderr: {self.err}"


class SimTest(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.dir = Path(self._directory.name)

    def tearDown(self):
        self._directory.cleanup()

    def sim(self, *words, prefix=(), env=None, cwd=None, timeout=120):
        done = subprocess.run([*prefix, str(BROKEN), *map(str, words)], cwd=cwd or self.dir, capture_output=True,
                              timeout=timeout, env=env, stdin=subprocess.DEVNULL)
        return Answer(done)

    def shell(self, command):
        return Answer(subprocess.run(["/bin/sh", "-c", command], cwd=self.dir, capture_output=True, timeout=120,
                                     env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL))

    def left(self):
        """Every file below the directory of this test."""
        return sorted(str(p.relative_to(self.dir)) for p in self.dir.rglob("*") if p.is_file())

    def refused(self, answer, *parts):
        """Wrong usage or unreadable input: exit 2, one line on stderr that says what and where, and nothing else."""
        self.assertEqual(answer.code, 2, answer)
        self.assertEqual(answer.out, "", answer)
        lines = answer.err.splitlines()
        self.assertEqual(len(lines), 1, answer)
        self.assertTrue(lines[0].startswith("holdfast-sim: "), answer)
        for part in parts:
            self.assertIn(part, lines[0])

    def find_violation(self, scenario="test-lost-update", *words):
        """A campaign that ends at the first violation. Answers its trace's path and the printed command."""
        answer = self.sim("campaign", scenario, "--seeds", "1..5000", "--stop-after", 1, *words)
        self.assertEqual(answer.code, 1, answer)
        fields = {}
        for line in answer.out.splitlines():
            name, _, value = line.strip().partition("   ")
            fields.setdefault(name, value.strip())
        return self.dir / fields["trace"], fields["replay"]


def lines_of(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def write_lines(path, lines):
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))


__all__ = ["Answer", "BROKEN", "SimTest", "lines_of", "shlex", "write_lines"]
