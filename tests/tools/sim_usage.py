"""Wrong usage of holdfast-sim: exit 2, one line on stderr that names what is wrong, nothing left behind.

Every command line below is called in an empty directory; afterwards the directory must still be empty."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from sim import SimTest  # noqa: E402

# Words of the command line, and what the line on stderr must name.
WRONG = [
    ([], ["subcommand"]),
    (["dance"], ["dance"]),
    (["run"], ["SCENARIO"]),
    (["run", "no-such-scenario"], ["'no-such-scenario'", "test-lost-update"]),
    (["campaign", "no-such-scenario"], ["'no-such-scenario'"]),
    (["explore", "no-such-scenario"], ["'no-such-scenario'"]),
    (["run", "test-right", "two"], ["two"]),
    (["run", "test-right", "--seed", "minus"], ["--seed", "'minus'", "whole number"]),
    (["run", "test-right", "--seed", "-1"], ["--seed", "'-1'"]),
    (["run", "test-right", "--seed", "18446744073709551616"], ["--seed", "'18446744073709551616'"]),
    (["run", "test-right", "--seed"], ["--seed"]),
    (["run", "test-right", "--sed", "1"], ["--sed"]),
    (["run", "test-right", "--strategy", "luck"], ["--strategy", "'luck'", "fifo, random"]),
    (["run", "test-right", "--strategy", "random:stay=1001"], ["--strategy", "stay", "0 to 1000"]),
    (["run", "test-right", "--strategy", "random:go=1"], ["--strategy", "'go'", "stay and time"]),
    (["run", "test-right", "--strategy", "exhaustive"], ["--strategy", "preemptions"]),
    (["run", "test-right", "--strategy", "fifo:1"], ["--strategy", "'fifo'"]),
    (["run", "test-right", "--set", "fibers"], ["--set", "'fibers'", "KEY=VALUE"]),
    (["run", "test-right", "--set", "fibers=many"], ["--set", "'fibers=many'"]),
    (["run", "test-right", "--set", "fibers=9"], ["'fibers'", "'test-right'", "is 9", "from 1 to 8"]),
    (["run", "test-right", "--set", "fibers=0"], ["'fibers'", "is 0", "from 1 to 8"]),
    (["run", "test-right", "--set", "fibers=8MiB"], ["'fibers'", "is 8388608", "from 1 to 8"]),
    (["run", "test-right", "--set", "wings=2"], ["'wings'", "fibers, times"]),
    (["campaign", "test-right", "--set", "wings=2"], ["'wings'", "fibers, times"]),
    (["campaign", "test-right", "test-crash", "--set", "wings=2"], ["'wings'"]),
    (["campaign", "--seeds", "9..1"], ["--seeds", "'9..1'", "A..B"]),
    (["campaign", "--seeds", "9"], ["--seeds", "'9'", "A..B"]),
    (["campaign", "--for", "60"], ["--for", "'60'", "unit"]),
    (["campaign", "--for", "soon"], ["--for", "'soon'", "unit"]),
    (["campaign", "--for", "0s"], ["--for", "'0s'"]),
    (["campaign", "--jobs", "0"], ["--jobs", "'0'", "from 1 to 256"]),
    (["campaign", "--shard", "3/2"], ["--shard", "'3/2'", "I/N"]),
    (["campaign", "--strategy", "exhaustive:2"], ["--strategy", "explore"]),
    (["campaign", "--stop-after", "0"], ["--stop-after", "'0'"]),
    (["explore", "test-right", "--preemptions", "65"], ["--preemptions", "'65'", "from 0 to 64"]),
    (["explore", "test-right", "--faults", "some"], ["--faults", "'some'", "each"]),
    (["list", "rooms"], ["'rooms'", "scenarios|invariants"]),
    (["replay"], ["TRACE"]),
    (["replay", "missing.jsonl"], ["missing.jsonl", "No such file"]),
    (["replay", "."], [".", "directory"]),
    (["replay", "x.jsonl", "--until", "0"], ["--until", "'0'"]),
    (["shrink", "x.jsonl"], ["'shrink'", "not in this version"]),
    (["explain", "x.jsonl"], ["'explain'", "not in this version"]),
    (["check", "x.jsonl"], ["'check'", "not in this version"]),
    (["reconstruct", "x.jsonl"], ["'reconstruct'", "not in this version"]),
    (["merge", "x.sqlite"], ["'merge'", "not in this version"]),
    (["report", "x.sqlite"], ["'report'", "not in this version"]),
    (["campaign", "--store", "x.sqlite"], ["'--store'", "not in this version"]),
    (["replay", "x.jsonl", "--guided"], ["'--guided'", "not in this version"]),
]


class Usage(SimTest):
    def test_every_wrong_command_line_is_refused_in_one_line(self):
        for words, parts in WRONG:
            with self.subTest(words=words):
                self.refused(self.sim(*words), *parts)
                self.assertEqual(self.left(), [])

    def test_json_does_not_change_what_a_wrong_command_line_prints(self):
        self.refused(self.sim("run", "no-such-scenario", "--json"), "'no-such-scenario'")

    def test_a_trace_that_cannot_be_written_is_said_and_nothing_is_left(self):
        self.refused(self.sim("run", "test-right", "--trace", "no/such/place.jsonl"), "no/such/place.jsonl")
        self.assertEqual(self.left(), [])

    def test_a_directory_for_traces_that_cannot_be_made_is_said(self):
        (self.dir / "file").write_text("")
        answer = self.sim("campaign", "test-lost-update", "--seeds", "1..2000", "--traces", "file/below")
        self.assertEqual(answer.code, 2, answer)
        self.assertIn("file/below", answer.err)
        self.assertEqual(self.left(), ["file"])

    def test_help_names_every_command_and_nothing_of_a_later_version(self):
        answer = self.sim("--help")
        self.assertEqual(answer.code, 0, answer)
        for command in ("list", "run", "campaign", "explore", "replay", "models"):
            self.assertIn(command, answer.out)
        for later in ("shrink", "explain", "reconstruct", "--store", "--guided"):
            self.assertNotIn(later, answer.out)

    def test_help_of_a_command_shows_what_an_option_is_when_it_is_not_given(self):
        answer = self.sim("campaign", "--help")
        self.assertEqual(answer.code, 0, answer)
        self.assertIn("1..1000", answer.out)
        self.assertIn("traces-found", answer.out)

    def test_version_names_the_build(self):
        answer = self.sim("--version")
        self.assertEqual(answer.code, 0, answer)
        self.assertRegex(answer.out, r"^holdfast-sim \d+\.\d+\.\d+, build [0-9a-f]{40}\n$")


if __name__ == "__main__":
    unittest.main()
