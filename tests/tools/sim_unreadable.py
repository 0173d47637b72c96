"""Traces that cannot be read: one line that names file and line, exit 2, nothing guessed, nothing left behind.

Each case spoils one line of a good trace in one way. Then traces are cut at every place, filled with chance, and
compressed ones are cut and damaged: whatever comes, the answer is an exit code of the contract and a line of text."""
import json
import random
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from sim import SimTest, lines_of, write_lines  # noqa: E402


def drop(field):
    def spoil(line):
        del line[field]
    return spoil


def put(field, value):
    def spoil(line):
        line[field] = value
    return spoil


# Which line (by its kind), how it is spoiled, and what the answer must say.
SPOILED = [
    ("header", put("format", 2), ["format 2", "newer", "format 1"]),
    ("header", put("format", 0), ["format 0"]),
    ("header", put("format", "1"), ["'format'", "whole number"]),
    ("header", put("seed", -1), ["'seed'", "whole number"]),
    ("header", put("seed", 1.5), ["'seed'", "whole number"]),
    ("header", put("seed", 10 ** 30), ["'seed'", "whole number"]),
    ("header", put("parameters", []), ["'parameters'", "object"]),
    ("header", put("parameters", {"fibers": "two"}), ["'fibers'", "whole number"]),
    ("header", put("origin", "dreamt"), ["'origin'", "simulated, recorded or written"]),
    ("header", put("core", "not hex"), ["'core'", "build id"]),
    ("header", put("promises", "T-1"), ["'promises'", "list"]),
    ("header", put("config", {"x": 1.5}), ["'x'"]),
    ("header", put("weather", "fine"), ["unknown field", "'weather'"]),
    ("header", drop("title"), ["no field 'title'"]),
    ("header", drop("strategy"), ["no field 'strategy'"]),
    ("header", put("line", "choices"), ["begins with a header"]),
    ("op", put("line", "header"), ["second header"]),
    ("op", put("line", "opp"), ["no line 'opp'"]),
    ("op", put("line", 7), ["'line'", "string"]),
    ("op", drop("line"), ["no field 'line'"]),
    ("op", put("args", {"times": True}), ["'times'", "whole number"]),
    ("op", put("args", {"times": 2 ** 63}), ["'times'", "2^63-1"]),
    ("op", put("args", {"times": {"deep": {"deeper": {"deepest": {}}}}}), ["nested"]),
    ("op", put("who", None), ["'who'", "string"]),
    ("choices", put("first", 1), ["'first' is 1", "0 choices came before"]),
    ("choices", put("c", [0]), ["pairs"]),
    ("choices", put("c", []), ["without a choice"]),
    ("choices", put("c", [0, 9999]), ["label 9999"]),
    ("choices", put("c", [2 ** 32, 0]), ["32 bits"]),
    ("choices", put("c", [-1, 0]), ["'c'", "whole number"]),
    ("choices", put("c", [0, 0] * 4097), ["4096 choices"]),
    ("choices", put("checks", []), ["'checks' has 0 entries", "need 1"]),
    ("choices", put("checks", ["12345"]), ["8 hexadecimal digits"]),
    ("choices", put("labels", "a"), ["'labels'", "list"]),
    ("end", put("line", "op"), ["cannot follow"]),
    ("end", put("outcome", "odd"), ["'outcome'", "'odd'", "clean, violation or crash"]),
    ("end", put("outcome", "crash"), ["no field 'signal'"]),
    ("end", drop("invariant"), ["no field 'invariant'"]),
    ("end", drop("steps"), ["no field 'steps'"]),
    ("end", put("time_ns", -1), ["'time_ns'", "negative"]),
    ("end", put("fingerprint", "abc"), ["32 hexadecimal digits"]),
    ("end", put("on_clean_core", "clean"), ["'on_clean_core'", "mutant"]),
]


class Unreadable(SimTest):
    @classmethod
    def setUpClass(cls):
        helper = cls("setUpClass_helper")
        helper.setUp()
        path, _ = helper.find_violation()
        cls.good = lines_of(path)
        cls.bytes = Path(path).read_bytes()
        helper.tearDown()

    def setUpClass_helper(self):
        pass

    def replay(self, content, name="t.jsonl"):
        path = self.dir / name
        path.write_bytes(content)
        answer = self.sim("replay", name)
        self.assertEqual(self.left(), [name])
        return answer

    def test_the_good_trace_is_good(self):
        answer = self.replay(self.bytes)
        self.assertEqual(answer.code, 0, answer)

    def test_each_spoiled_line_is_named_by_its_number(self):
        for kind, spoil, parts in SPOILED:
            lines = json.loads(json.dumps(self.good))
            at = next(i for i, line in enumerate(lines) if line["line"] == kind)
            spoil(lines[at])
            with self.subTest(kind=kind, parts=parts):
                write_lines(self.dir / "t.jsonl", lines)
                self.refused(self.sim("replay", "t.jsonl"), f"t.jsonl:{at + 1}: ", *parts)
                self.assertEqual(self.left(), ["t.jsonl"])

    def test_a_field_that_comes_twice_is_refused(self):
        text = self.bytes.replace(b'"title":', b'"title":"other","title":', 1)
        self.refused(self.replay(text), "t.jsonl:1: ", "'title'", "twice")

    def test_lines_after_the_end_an_empty_file_and_an_empty_line_are_refused(self):
        count = len(self.good)
        self.refused(self.replay(self.bytes + b'{"line":"end"}\n'), f"t.jsonl:{count + 1}: ", "after the end line")
        self.refused(self.replay(b""), "t.jsonl:1: ", "empty")
        self.refused(self.replay(b"\n" + self.bytes), "t.jsonl:1: ", "not JSON")
        self.refused(self.replay(b"[1]\n"), "t.jsonl:1: ", "not a JSON object")

    def test_a_trace_cut_anywhere_is_refused(self):
        # The last line may lack its line end: it is whole.
        for size in range(0, len(self.bytes) - 1, 7):
            with self.subTest(size=size):
                line = max(1, self.bytes[:size].rstrip(b"\n").count(b"\n") + 1)
                self.refused(self.replay(self.bytes[:size]), f"t.jsonl:{line}: ")

    def test_chance_is_refused(self):
        chance = random.Random(1)
        for size in (1, 10, 1000, 100_000):
            with self.subTest(size=size):
                self.refused(self.replay(chance.randbytes(size)), "t.jsonl:1: ")

    def test_one_changed_byte_never_does_harm(self):
        chance = random.Random(2)
        for _ in range(150):
            text = bytearray(self.bytes)
            text[chance.randrange(len(text))] = chance.randrange(256)
            answer = self.replay(bytes(text))
            self.assertIn(answer.code, (0, 2, 3), answer)
            if answer.code == 2:
                self.assertEqual(len(answer.err.splitlines()), 1, answer)

    def test_a_line_beyond_64_mib_is_refused(self):
        text = b'{"line":"header","title":"' + b"x" * (64 << 20) + b'"}\n'
        self.refused(self.replay(text), "t.jsonl:1: ", "64 MiB")

    def zstd(self, content):
        return subprocess.run(["zstd", "-q", "-c"], input=content, capture_output=True, check=True).stdout

    def test_compressed_traces_are_read_and_damaged_ones_refused(self):
        packed = self.zstd(self.bytes)
        self.assertEqual(self.replay(packed, "t.jsonl.zst").code, 0)
        # Two frames one after the other are one file.
        half = len(self.bytes) // 2
        two = self.zstd(self.bytes[:half]) + self.zstd(self.bytes[half:])
        self.assertEqual(self.replay(two, "t.jsonl.zst").code, 0)
        for size in range(1, len(packed), 11):
            with self.subTest(size=size):
                self.refused(self.replay(packed[:size], "t.jsonl.zst"), "t.jsonl.zst:")
        self.refused(self.replay(self.bytes, "t.jsonl.zst"), "t.jsonl.zst:1: ", "damaged")
        self.refused(self.replay(random.Random(3).randbytes(5000), "t.jsonl.zst"), "t.jsonl.zst:1: ", "damaged")
        self.refused(self.replay(packed[:40] + b"\0\xff" + packed[42:], "t.jsonl.zst"), "t.jsonl.zst:")

    def test_what_the_program_does_not_have_is_named(self):
        for field, value, parts in [
            ("scenario", "no-such", ["'no-such'"]),
            ("parameters", {"wings": 1}, ["'wings'"]),
            ("parameters", {"fibers": 99}, ["'fibers'", "from 1 to 8"]),
            ("config", {"lease_ns_max": 5}, ["'lease_ns_max'"]),
            ("hardware", "quantum", ["'quantum'"]),
        ]:
            with self.subTest(field=field):
                lines = json.loads(json.dumps(self.good))
                lines[0][field] = value
                write_lines(self.dir / "t.jsonl", lines)
                self.refused(self.sim("replay", "t.jsonl"), "t.jsonl: ", *parts)

    def test_an_op_that_makes_no_sense_to_its_scenario_is_named(self):
        lines = json.loads(json.dumps(self.good))
        next(line for line in lines if line["line"] == "op")["what"] = "fly"
        write_lines(self.dir / "t.jsonl", lines)
        self.refused(self.sim("replay", "t.jsonl"), "t.jsonl: ", "'fly'")

    def test_a_fault_that_does_not_exist_is_named(self):
        lines = json.loads(json.dumps(self.good))
        at = next(i for i, line in enumerate(lines) if line["line"] == "choices")
        lines.insert(at, {"line": "fault", "where": "moon", "host": "", "nth": 1, "times": 1, "what": "", "value": 0})
        write_lines(self.dir / "t.jsonl", lines)
        self.refused(self.sim("replay", "t.jsonl"), "t.jsonl: ", "'moon'")

    def test_one_unreadable_trace_among_good_ones_is_exit_2_and_the_others_are_still_run(self):
        (self.dir / "good.jsonl").write_bytes(self.bytes)
        (self.dir / "bad.jsonl").write_bytes(b"{}\n")
        answer = self.sim("replay", "bad.jsonl", "good.jsonl")
        self.assertEqual(answer.code, 2, answer)
        self.assertIn("bad.jsonl:1: ", answer.err)
        self.assertIn("1 same", answer.out)


if __name__ == "__main__":
    unittest.main()
