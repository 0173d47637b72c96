"""holdfast-smoke as an operator meets it: the table and the JSON of the contract, exit codes, a machine without UCX,
wrong options in one line, and nothing left behind."""
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ["HOLDFAST_BIN"])


class Smoke(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.dir = Path(self._directory.name)

    def tearDown(self):
        self._directory.cleanup()

    def smoke(self, *words):
        done = subprocess.run([BIN / "holdfast-smoke", *words], cwd=self.dir, capture_output=True, timeout=200,
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def left(self):
        return sorted(p.name for p in self.dir.iterdir())

    def test_every_part_is_in_the_table_and_bytes_were_moved_between_two_processes(self):
        code, out, err = self.smoke("--seconds", "500ms", "--bytes", "4MiB", "--record", "smoke.jsonl")
        self.assertEqual(code, 0, out + err)
        rows = {}
        for line in out.splitlines()[1:]:
            match = re.match(r"^(\S+) +(.+?) +(ok|failed|absent) +(.*)$", line)
            self.assertIsNotNone(match, line)
            rows[match[1], match[2]] = (match[3], match[4])
        self.assertEqual({part for part, _ in rows}, {"host", "ucx", "verbs", "cuda"})
        self.assertEqual([row for row, (result, _) in rows.items() if result == "failed"], [])
        for check in ("peer killed", "peer killed, tcp", "shutdown", "shutdown, tcp", "cancel in flight", "peer stopped"):
            self.assertEqual(rows["ucx", check][0], "ok")
        self.assertIn("every byte checked", rows["ucx", "get 4 MiB"][1])
        # What it recorded is a trace that holdfast-sim understands, down to the scenario, which it does not have.
        self.assertEqual(self.left(), ["smoke.jsonl"])
        done = subprocess.run([BIN / "holdfast-sim", "replay", "smoke.jsonl"], cwd=self.dir, capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"there is no scenario 'holdfast-smoke'", done.stderr)

    def test_json_has_the_fields_of_the_contract(self):
        code, out, err = self.smoke("--only", "host", "--json")
        self.assertEqual(code, 0, err)
        document = json.loads(out)
        self.assertIn("machine", document)
        self.assertGreater(len(document["checks"]), 0)
        for check in document["checks"]:
            self.assertEqual({"part", "check", "result", "figure", "reason"} - set(check), set())
            self.assertEqual((check["part"], check["result"]), ("host", "ok"))

    def test_a_machine_without_ucx_is_said_and_nothing_ran(self):
        for words in (["--only", "ucx", "--ucx-library", "/no/such/libucp.so"], ["--only", "cuda"], ["--only", "verbs"]):
            code, out, _ = self.smoke(*words)
            self.assertEqual(code, 1, out)
            lines = out.splitlines()
            self.assertEqual(len(lines), 2, out)
            self.assertRegex(lines[1], rf"^{words[1]} .* absent ")
        self.assertEqual(self.left(), [])

    def test_a_part_that_is_absent_does_not_fail_the_others(self):
        code, out, _ = self.smoke("--only", "host", "--only", "ucx", "--ucx-library", "/no/such/libucp.so")
        self.assertEqual(code, 0, out)
        self.assertIn("absent", out)

    def test_wrong_options_are_refused_in_one_line(self):
        for words, part in [
            (["--only", "moon"], "'moon'"),
            (["--bytes", "12parsecs"], "'12parsecs'"),
            (["--bytes", "0"], "--bytes"),
            (["--peers", "0"], "--peers"),
            (["--peers", "two"], "'two'"),
            (["--seconds", "-1"], "--seconds"),
            (["--seconds", "soon"], "'soon'"),
            (["--calibrate", "x.toml"], "not in this version"),
            (["--record", "no/such/place"], "no/such/place"),
            (["--moon"], "--moon"),
            (["again"], "again"),
        ]:
            with self.subTest(words=words):
                code, out, err = self.smoke(*words)
                self.assertEqual((code, out), (2, ""), err)
                self.assertEqual(len(err.splitlines()), 1, err)
                self.assertTrue(err.startswith("holdfast-smoke: "), err)
                self.assertIn(part, err)
                self.assertEqual(self.left(), [])


if __name__ == "__main__":
    unittest.main()
