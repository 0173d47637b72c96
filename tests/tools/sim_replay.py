"""A run that violates leaves a trace, and the trace is enough: the printed command shows the same violation in a new
process with an empty environment. A trace that says something else than happens is noticed, and both sides are named."""
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from sim import SimTest, lines_of, write_lines  # noqa: E402


class Replay(SimTest):
    def spoiled(self, path, spoil, name="spoiled.jsonl"):
        lines = lines_of(path)
        spoil(lines)
        write_lines(self.dir / name, lines)
        return name

    def test_the_printed_command_is_enough(self):
        path, command = self.find_violation()
        self.assertTrue(path.is_file())
        answer = self.shell(command)
        self.assertEqual(answer.code, 0, answer)
        self.assertIn("violation of T-1: an update was lost", answer.out)
        self.assertTrue(answer.out.endswith("replay: 1 traces, 1 same, 0 diverged, 0 different\n"), answer)

    def test_run_explore_and_campaign_all_leave_a_trace_that_replays(self):
        _, from_campaign = self.find_violation()
        seed = re.search(r"-(\d+)-T-1", from_campaign).group(1)
        for words in (["run", "test-lost-update", "--seed", seed], ["explore", "test-lost-update"]):
            answer = self.sim(*words)
            self.assertEqual(answer.code, 1, answer)
            command = re.search(r"^  replay   (.*)$", answer.out, re.M).group(1)
            self.assertEqual(self.shell(command).code, 0)

    def test_a_path_with_spaces_is_quoted_in_the_printed_command(self):
        _, command = self.find_violation("test-lost-update", "--traces", "a place/it's here")
        self.assertEqual(self.shell(command).code, 0)

    def test_the_trace_says_what_the_contract_says(self):
        path, _ = self.find_violation()
        lines = lines_of(path)
        kinds = [line["line"] for line in lines]
        order = ["header", "op", "fault", "choices", "event", "end"]
        self.assertEqual(kinds, sorted(kinds, key=order.index))
        header, end = lines[0], lines[-1]
        for field in ("format", "title", "why", "scenario", "parameters", "seed", "strategy", "config", "hardware",
                      "origin", "core", "promises"):
            self.assertIn(field, header)
        self.assertRegex(header["strategy"], r"^random:stay=\d+,time=\d+$")
        self.assertEqual(header["promises"], ["T-1"])
        self.assertRegex(header["core"], r"^[0-9a-f]{40}$")
        self.assertEqual((end["outcome"], end["invariant"], end["core"]), ("violation", "T-1", "clean"))
        self.assertRegex(end["fingerprint"], r"^[0-9a-f]{32}$")

    def test_another_choice_diverges_and_both_sides_are_named(self):
        path, _ = self.find_violation()

        def spoil(lines):
            choices = next(line for line in lines if line["line"] == "choices")
            choices["labels"].append("a/nobody fly moon#1")
            choices["c"][2:4] = [choices["c"][2], len(choices["labels"]) - 1]
        answer = self.sim("replay", self.spoiled(path, spoil))
        self.assertEqual(answer.code, 3, answer)
        self.assertIn("choice 1: the trace chooses 'a/nobody fly moon#1'", answer.out)
        self.assertIn("enabled are 'a/app-", answer.out)
        self.assertIn("1 diverged", answer.out)

    def test_another_enabled_set_diverges(self):
        path, _ = self.find_violation()

        def spoil(lines):
            next(line for line in lines if line["line"] == "choices")["checks"][0] = "00000000"
        answer = self.sim("replay", self.spoiled(path, spoil))
        self.assertEqual(answer.code, 3, answer)
        self.assertIn("from other entries than these", answer.out)

    def test_a_trace_with_fewer_choices_than_the_run_diverges(self):
        path, _ = self.find_violation()

        def spoil(lines):
            choices = next(line for line in lines if line["line"] == "choices")
            choices["c"] = choices["c"][:2]
        answer = self.sim("replay", self.spoiled(path, spoil))
        self.assertEqual(answer.code, 3, answer)
        self.assertIn("no more than 1 choices", answer.out)

    def test_steps_time_and_fingerprint_are_compared_for_the_program_that_wrote_the_trace(self):
        path, _ = self.find_violation()
        for field, value in (("steps", 77), ("time_ns", 77), ("fingerprint", "0" * 32)):
            name = self.spoiled(path, lambda lines: lines[-1].update({field: value}))
            answer = self.sim("replay", name)
            self.assertEqual(answer.code, 3, answer)
            self.assertIn("diverged", answer.out)

            def foreign(lines):
                lines[0]["core"] = "ab" * 20
                lines[-1][field] = value
            answer = self.sim("replay", self.spoiled(path, foreign))
            self.assertEqual(answer.code, 0, answer)

    def test_another_outcome_is_different_whoever_wrote_the_trace(self):
        path, _ = self.find_violation()
        for core in (lines_of(path)[0]["core"], "", "ab" * 20):
            def spoil(lines):
                lines[0]["core"] = core
                lines[-1]["invariant"] = "T-2"
            answer = self.sim("replay", self.spoiled(path, spoil))
            self.assertEqual(answer.code, 3, answer)
            self.assertIn("the trace says violation of T-2", answer.out)
            self.assertIn("1 different", answer.out)

    def test_on_another_build_choices_are_followed_to_the_first_mismatch_and_the_run_goes_on(self):
        # The same ops in a scenario that adds in one step: the second choice differs, and nothing is violated.
        path, _ = self.find_violation()

        def spoil(lines):
            lines[0].update(scenario="test-right", core="ab" * 20)
            for line in lines:
                if line["line"] == "op":
                    line["what"] = "add_right"
            lines[-1] = {"line": "end", "outcome": "clean", "core": "clean", "steps": 0, "time_ns": 0, "fingerprint": ""}
        answer = self.sim("replay", "--json", self.spoiled(path, spoil))
        self.assertEqual(answer.code, 0, answer)
        trace = answer.json()["traces"][0]
        self.assertEqual((trace["result"], trace["outcome"]), ("same", "clean"))
        self.assertLess(trace["followed"], trace["choices"])
        self.assertIn("enabled are", trace["difference"])

    def test_a_mutants_trace_says_what_the_clean_core_must_do(self):
        path, _ = self.find_violation()

        def of_a_mutant(lines):
            lines[0].update(scenario="test-right", core="ab" * 20)
            for line in lines:
                if line["line"] == "op":
                    line["what"] = "add_right"
            lines[-1].update(core="PM-X1", on_clean_core="clean")
        self.assertEqual(self.sim("replay", self.spoiled(path, of_a_mutant)).code, 0)

        def still_wrong(lines):
            lines[0]["core"] = "ab" * 20
            lines[-1].update(core="PM-X1", on_clean_core="clean")
        answer = self.sim("replay", self.spoiled(path, still_wrong))
        self.assertEqual(answer.code, 3, answer)
        self.assertIn("the trace says clean", answer.out)

        name = self.spoiled(path, lambda lines: lines[-1].update(core="PM-X1"))
        self.refused(self.sim("replay", name), name, "'PM-X1'", "'clean'")

    def test_a_crash_leaves_a_trace_that_crashes_again(self):
        for words in (["campaign", "test-crash", "--stop-after", "1"], ["explore", "test-crash"]):
            answer = self.sim(*words)
            self.assertEqual(answer.code, 1, answer)
            self.assertIn("violation crash: the process died: SIGSEGV", answer.out)
            path = self.dir / re.search(r"^  trace    (.*)$", answer.out, re.M).group(1)
            end = lines_of(path)[-1]
            self.assertEqual((end["outcome"], end["signal"]), ("crash", "SIGSEGV"))
            command = re.search(r"^  replay   (.*)$", answer.out, re.M).group(1)
            again = self.shell(command)
            self.assertEqual(again.code, 0, again)
            self.assertIn("crash, SIGSEGV", again.out)
        seed = re.search(r"(?:random|pct)-(\d+)-crash", "".join(self.left())).group(1)
        answer = self.sim("run", "test-crash", "--seed", seed, "--trace", "crash.jsonl.zst")
        self.assertEqual(answer.code, 1, answer)
        self.assertEqual(self.sim("replay", "crash.jsonl.zst").code, 0)
        self.assertEqual([name for name in self.left() if "choices" in name or "part" in name], [])

    # Every scenario of the program ends, so only those that are wrong on purpose can have such traces.
    def test_stored_traces_of_a_livelock_and_of_recursion_without_end_end_so_again(self):
        traces = sorted((Path(__file__).parent / "traces").glob("*.jsonl"))
        self.assertEqual([path.name for path in traces], ["livelock.jsonl", "recursion-without-end.jsonl"])
        answer = self.sim("replay", *traces)
        self.assertEqual(answer.code, 0, answer)
        self.assertRegex(answer.out, r"violation of livelock: more than 100 steps; of the last 1000 a/app-\d made \d+, "
                                     r"and repeats load atomic#1\n")
        self.assertRegex(answer.out, r"violation of stack overflow: a/app-1 ran out of its stack of \d+ bytes; its last "
                                     r"operation was yield\n")
        self.assertTrue(answer.out.endswith("replay: 2 traces, 2 same, 0 diverged, 0 different\n"), answer)

    def test_a_livelock_and_recursion_without_end_leave_traces_that_end_so_again(self):
        for scenario, invariant in (("test-livelock", "livelock"), ("test-recursion", "stack overflow")):
            for verb in ("run", "campaign", "explore"):
                limits = ["--seeds", "1..3", "--stop-after", "1"] if verb == "campaign" else []
                answer = self.sim(verb, scenario, "--steps-max", "100", *limits)
                self.assertEqual(answer.code, 1, answer)
                self.assertIn(f"violation {invariant}: ", answer.out)
                command = re.search(r"^  replay   (.*)$", answer.out, re.M).group(1)
                again = self.shell(command)
                self.assertEqual(again.code, 0, again)
                self.assertIn(f"violation of {invariant}: ", again.out)

    def test_a_crash_that_was_not_promised_is_different(self):
        self.assertEqual(self.sim("campaign", "test-crash", "--stop-after", "1").code, 1)
        path = self.dir / self.left()[0]

        def spoil(lines):
            lines[-1] = {"line": "end", "outcome": "clean", "core": "clean", "steps": 0, "time_ns": 0, "fingerprint": ""}
        answer = self.sim("replay", self.spoiled(path, spoil))
        self.assertEqual(answer.code, 3, answer)
        self.assertIn("ended as crash; the trace says clean", answer.out)

    def test_a_written_trace_without_choices_runs_by_the_strategy_it_names(self):
        lines = [
            {"line": "header", "format": 1, "title": "t", "why": "w", "scenario": "test-right", "parameters": {}, "seed": 1,
             "strategy": "fifo", "config": {}, "hardware": "default", "origin": "written", "core": "", "promises": []},
            {"line": "op", "who": "a/app-1", "what": "add_right", "args": {}},
            {"line": "fault", "where": "heap", "host": "a", "nth": 3, "times": 1, "what": "fail", "value": 0},
            {"line": "end", "outcome": "clean", "core": "clean", "steps": 0, "time_ns": 0, "fingerprint": ""},
        ]
        write_lines(self.dir / "w.jsonl", lines)
        self.assertEqual(self.sim("replay", "w.jsonl").code, 0)
        lines[0]["strategy"] = "hope"
        write_lines(self.dir / "w.jsonl", lines)
        self.refused(self.sim("replay", "w.jsonl"), "w.jsonl: ", "'hope'")

    def test_events_are_shown_written_and_cut(self):
        answer = self.sim("run", "test-stray", "--events", "--json")
        document = answer.json()
        self.assertEqual([e["event"] for e in document["events"]], ["op_ended", "op_ended"])
        self.assertEqual(document["events"][0]["fields"]["ok"], True)
        answer = self.sim("run", "test-stray", "--events")
        self.assertIn("a/app-1  op_ended  op=", answer.out)

    def test_a_million_choices_are_written_and_replayed(self):
        answer = self.sim("run", "test-right", "--strategy", "random:stay=300,time=0", "--set", "fibers=4", "--set",
                          "times=300000", "--steps-max", 10_000_000, "--trace", "big.jsonl.zst", "--json", timeout=280)
        self.assertEqual(answer.code, 0, answer)
        choices = answer.json()["choices"]
        self.assertGreater(choices, 1_000_000)
        answer = self.sim("replay", "big.jsonl.zst", "--json", timeout=280)
        self.assertEqual(answer.code, 0, answer)
        trace = answer.json()["traces"][0]
        self.assertEqual((trace["followed"], trace["choices"], trace["result"]), (choices, choices, "same"))

    def test_json_of_a_replay_has_the_fields_of_the_contract(self):
        path, _ = self.find_violation()
        answer = self.sim("replay", path, "--json")
        trace = answer.json()["traces"][0]
        for field in ("file", "outcome", "expected", "fingerprint", "result"):
            self.assertIn(field, trace)
        self.assertEqual((trace["outcome"], trace["expected"], trace["result"]), ("violation", "violation", "same"))


if __name__ == "__main__":
    unittest.main()
