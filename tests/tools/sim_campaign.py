"""Campaigns and explorations as scripts see them: exit codes, last line, JSON, shards, jobs, interruption."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from sim import BROKEN, SimTest  # noqa: E402

LAST = re.compile(r"^campaign: (\d+) runs, (\d+) steps, (\d+) violations, (\d+) unreached, (\d+) determinism failures$")


class Campaign(SimTest):
    def last(self, answer):
        match = LAST.match(answer.out.splitlines()[-1])
        self.assertIsNotNone(match, answer)
        return [int(group) for group in match.groups()]

    def test_without_violation_it_is_exit_0_and_leaves_nothing(self):
        answer = self.sim("campaign", "test-right", "--seeds", "1..100")
        self.assertEqual(answer.code, 0, answer)
        runs, steps, violations, unreached, determinism = self.last(answer)
        # Two seeds of these hundred are run twice.
        self.assertEqual((runs, violations, unreached, determinism), (102, 0, 0, 0))
        self.assertGreater(steps, runs)
        self.assertEqual(self.left(), [])

    def test_json_has_the_fields_of_the_contract(self):
        answer = self.sim("campaign", "test-lost-update", "--seeds", "1..500", "--json", "--stop-after", "2")
        self.assertEqual(answer.code, 1, answer)
        document = answer.json()
        for field in ("scenarios", "runs", "steps", "choices", "seconds", "violations", "unreached", "inert_faults",
                      "determinism_failures", "complete"):
            self.assertIn(field, document)
        self.assertEqual(document["scenarios"], ["test-lost-update"])
        self.assertEqual(document["complete"], False)
        for violation in document["violations"]:
            self.assertEqual(violation["invariant"], "T-1")
            self.assertIn("an update was lost", violation["message"])
            self.assertTrue((self.dir / violation["trace"]).is_file())
            self.assertIsInstance(violation["seed"], int)

    def test_which_runs_violate_does_not_depend_on_how_many_processes_share_them(self):
        found = []
        for jobs in (1, 2, 5):
            answer = self.sim("campaign", "test-lost-update", "test-right", "--seeds", "1..300", "--jobs", jobs, "--json",
                              "--strategy", "random", "--strategy", "random:stay=500,time=0", "--stop-after", 10_000)
            self.assertEqual(answer.code, 1, answer)
            document = answer.json()
            self.assertTrue(document["complete"])
            found.append([document["fingerprint"]] +
                         [(v["seed"], v["strategy"], v["invariant"]) for v in document["violations"]])
        self.assertGreater(len(found[0]), 10)
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])

    def test_shards_share_the_seeds(self):
        words = ["campaign", "test-lost-update", "test-right", "--seeds", "1..200", "--stop-after", 10_000, "--json"]
        whole = {v["seed"] for v in self.sim(*words).json()["violations"]}
        parts = [{v["seed"] for v in self.sim(*words, "--shard", f"{i}/3").json()["violations"]} for i in (1, 2, 3)]
        self.assertEqual(set.union(*parts), whole)
        self.assertEqual(sum(map(len, parts)), len(whole))
        self.assertTrue(all(parts))

    def test_a_seed_alone_makes_the_run_that_the_campaign_made(self):
        words = ["test-lost-update", "--set", "times=3"]
        document = self.sim("campaign", *words, "--seeds", "1..60", "--stop-after", 10_000, "--json").json()
        found = {v["seed"]: v for v in document["violations"]}
        self.assertGreater(len({v["strategy"] for v in found.values()}), 5)
        families = set()
        for seed in range(1, 31):
            run = self.sim("run", *words, "--seed", seed, "--json")
            self.assertEqual(run.code, 1 if seed in found else 0, run)
            families.add(run.json()["strategy"].split(",")[0].split("=")[0])
            if seed in found:
                again = run.json()["violations"][0]
                for field in ("invariant", "message", "strategy"):
                    self.assertEqual(again[field], found[seed][field])
        self.assertEqual(families, {"random:stay", "pct:2", "pct:3"})
        # Another scenario has another mix for the same seeds.
        mixes = [[self.sim("run", scenario, "--seed", seed, "--json").json()["strategy"] for seed in range(1, 9)]
                 for scenario in ("test-lost-update", "test-right")]
        self.assertNotEqual(mixes[0], mixes[1])

    def test_the_printed_run_command_makes_the_violation_again(self):
        answer = self.sim("campaign", "test-lost-update", "test-right", "--set", "times=3", "--seeds", "1..50",
                          "--stop-after", 1)
        lines = {line.split()[0]: line.split(None, 1)[1] for line in answer.out.splitlines() if line.startswith("  ")}
        again = self.shell(lines["run"])
        self.assertEqual(again.code, 1, again)
        self.assertEqual(answer.out.splitlines()[0], again.out.splitlines()[0])

    def test_a_given_strategy_is_the_only_one(self):
        document = self.sim("campaign", "test-lost-update", "--strategy", "random:stay=300,time=0", "--seeds", "1..100",
                            "--json").json()
        self.assertEqual({v["strategy"] for v in document["violations"]}, {"random:stay=300,time=0"})

    def test_a_run_that_does_not_repeat_itself_is_exit_4_and_the_first_event_is_named(self):
        answer = self.sim("campaign", "test-stray", "--seeds", "1..10")
        self.assertEqual(answer.code, 4, answer)
        self.assertIn("the first different event is number 1", answer.out)
        self.assertEqual(self.last(answer)[4], 1)

    def test_a_run_without_scheduling_points_is_ended(self):
        began = time.monotonic()
        answer = self.sim("campaign", "test-spin", "--set", "spins=1", "--run-limit", "1s", "--seeds", "1..1")
        self.assertEqual(answer.code, 1, answer)
        self.assertIn("violation crash: the process died: SIGABRT", answer.out)
        self.assertLess(time.monotonic() - began, 60)

    def test_what_was_promised_and_not_exercised_is_exit_5(self):
        # Few runs: something is left out for certain, and the program must say so.
        program = BROKEN.parent / "unreached_mark"
        words = [program, "campaign", "--seeds", "1..1"]
        done = subprocess.run([*words, "--json"], cwd=self.dir, capture_output=True, timeout=280)
        document = json.loads(done.stdout)
        never = ["invariant " + i["id"] for i in document["invariants"] if i["exercised"] == 0]
        never += ["mark " + m["id"] for m in document["reached"] if m["runs"] == 0]
        self.assertTrue(document["complete"])
        self.assertEqual((document["violations"], document["unreached"]), ([], never))
        self.assertIn("mark T-M1", never)
        self.assertEqual(done.returncode, 5)
        done = subprocess.run(words, cwd=self.dir, capture_output=True, timeout=280)
        self.assertEqual(done.returncode, 5)
        lines = done.stdout.decode().splitlines()
        self.assertIn("never reached: mark T-M1: the impossible happened", lines)
        self.assertEqual(int(LAST.match(lines[-1]).group(4)), len(never))
        done = subprocess.run([program, "list", "reached"], cwd=self.dir, capture_output=True, timeout=280)
        self.assertIn("the impossible happened (in 0 runs)", done.stdout.decode())
        # A part of the scenarios promises nothing about the whole.
        self.assertEqual(self.sim("campaign", "test-right", "--seeds", "1..1").code, 0)

    def test_marks_are_counted_whatever_process_reached_them(self):
        words = ["campaign", "base-gate", "budget-edge", "pool-churn", "--seeds", "1..60", "--json"]
        counts = [self.sim(*words, "--jobs", jobs).json()["reached"] for jobs in (1, 4)]
        self.assertEqual(counts[0], counts[1])
        runs = {m["id"]: m["runs"] for m in counts[0]}
        self.assertGreater(runs["PM-H42"], 1)
        # Nobody fetches anything in these scenarios, which is no failure of a part.
        self.assertEqual(runs["TP-H7"], 0)
        self.assertEqual(self.sim(*words).code, 0)

    def test_a_fault_that_never_fires_is_exit_5_and_named(self):
        answer = self.sim("campaign", "test-fault-idle", "test-right", "--seeds", "1..50")
        self.assertEqual(answer.code, 5, answer)
        # Two of the fifty runs are made twice.
        self.assertIn("inert fault: test-fault-idle nic.register:refuse: planned in 51 runs, never fired", answer.out)
        self.assertEqual(self.last(answer)[2:], [0, 0, 0])

    def test_a_fault_that_changes_nothing_is_exit_5_and_named(self):
        for jobs in (1, 3):
            answer = self.sim("campaign", "test-fault-ignored", "--seeds", "1..60", "--jobs", jobs, "--json")
            self.assertEqual(answer.code, 5, answer)
            document = answer.json()
            self.assertEqual(document["inert_faults"], [
                "test-fault-ignored nic.register:refuse: planned in 61 runs, fired in 61, changed nothing"])
            self.assertEqual(document["faults"], [{"name": "nic.register:refuse", "scenario": "test-fault-ignored",
                                                   "planned": 61, "struck": 61, "effect": False}])

    def test_a_fault_with_an_effect_is_fine_and_few_runs_are_no_proof(self):
        answer = self.sim("campaign", "test-fault-heeded", "--seeds", "1..60", "--json")
        self.assertEqual(answer.code, 0, answer)
        self.assertEqual([(f["struck"], f["effect"]) for f in answer.json()["faults"]], [(61, True)])
        self.assertEqual(answer.json()["inert_faults"], [])
        for scenario in ("test-fault-idle", "test-fault-ignored"):
            self.assertEqual(self.sim("campaign", scenario, "--seeds", "1..20").code, 0)

    def test_time_bounds_a_campaign(self):
        began = time.monotonic()
        answer = self.sim("campaign", "test-right", "--for", "500ms", "--json")
        self.assertEqual(answer.code, 0, answer)
        self.assertLess(time.monotonic() - began, 30)
        self.assertTrue(answer.json()["complete"])
        self.assertGreater(answer.json()["runs"], 10)

    def start(self, *words, **more):
        return subprocess.Popen([str(BROKEN), *words], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, **more)

    def test_ctrl_c_ends_with_the_summary(self):
        process = self.start("campaign", "test-right", "--for", "10min", "--jobs", "2")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        lines = out.decode().splitlines()
        self.assertRegex(lines[-1], LAST)
        self.assertIn("stopped on request", lines)

    def test_a_signal_to_the_whole_group_is_one_request(self):
        # As `timeout` sends it: to the process, and at once to its group, the workers among it.
        process = self.start("campaign", "test-right", "--for", "10min", "--jobs", "2", start_new_session=True)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        os.killpg(process.pid, signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertRegex(out.decode().splitlines()[-1], LAST)
        self.assertEqual(self.left(), [])

    def test_a_second_ctrl_c_ends_at_once_and_takes_the_workers_along(self):
        process = self.start("campaign", "test-spin", "--set", "spins=1", "--jobs", "2")
        time.sleep(0.5)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        self.assertEqual(len(children), 2)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
        self.assertEqual(process.returncode, 130)
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{child}/exe").exists() for child in children) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual([c for c in children if Path(f"/proc/{c}/exe").exists()], [])

    def test_progress_goes_to_a_terminal_only(self):
        words = ["campaign", "test-right", "--for", "700ms"]
        self.assertEqual(self.sim(*words).err, "")
        leader, follower = pty.openpty()
        process = subprocess.Popen([str(BROKEN), *words], cwd=self.dir, stdout=subprocess.PIPE, stderr=follower,
                                   stdin=subprocess.DEVNULL)
        os.close(follower)
        shown = b""
        while process.poll() is None or select.select([leader], [], [], 0)[0]:
            if select.select([leader], [], [], 0.1)[0]:
                try:
                    shown += os.read(leader, 65536)
                except OSError:
                    break
        process.communicate()
        os.close(leader)
        self.assertRegex(shown.decode(), r"\[[#.]+\] \d+ runs, \d+/s, \d+:\d\d left, 0 violations")

    def test_exploration_ends_with_at_least_one_schedule_of_each_class_and_says_so(self):
        # n fibers with two points each (start, add): (2n)! / 2^n interleavings, of which n! differ in anything. That each
        # class is made exactly once, and that none is lost under a bound, are unit tests of the search.
        for fibers, classes, schedules in ((1, 1, 1), (2, 2, 6), (3, 6, 90), (4, 24, 2520)):
            answer = self.sim("explore", "test-right", "--set", f"fibers={fibers}", "--preemptions", 64, "--json")
            self.assertEqual(answer.code, 0, answer)
            document = answer.json()
            self.assertTrue(document["complete"])
            self.assertTrue(classes <= document["schedules"] <= schedules, document)
            self.assertGreaterEqual(document["runs"], document["schedules"])

    def test_exploration_makes_no_fewer_schedules_with_more_preemptions(self):
        counts = []
        for preemptions in range(4):
            answer = self.sim("explore", "test-right", "--set", "fibers=4", "--preemptions", preemptions, "--json")
            self.assertTrue(answer.json()["complete"])
            counts.append(answer.json()["schedules"])
        self.assertEqual(counts, sorted(counts))
        self.assertLess(counts[0], counts[3])

    def test_exploration_finds_what_needs_one_preemption_and_not_without(self):
        answer = self.sim("explore", "test-lost-update", "--preemptions", 0)
        self.assertEqual(answer.code, 0, answer)
        self.assertIn("that is all of them", answer.out)
        answer = self.sim("explore", "test-lost-update", "--preemptions", 1)
        self.assertEqual(answer.code, 1, answer)

    def test_each_fault_is_tried_at_each_pass_until_a_run_is_clean_of_it(self):
        # Two fibers ask three times each; what the scenario plans itself (the second pass) is left out.
        answer = self.sim("explore", "test-fault-heeded", "--set", "times=3", "--faults", "each", "--json")
        self.assertEqual(answer.code, 0, answer)
        document = answer.json()
        kinds = ["refuse", "limit", "delay", "never", "short"]
        self.assertEqual(document["tried"],
                         [{"point": "nic.register", "kind": k, "passes": 6, "complete": True} for k in kinds])
        # One without any fault, and for each kind six and a clean one.
        self.assertEqual((document["runs"], document["complete"]), (1 + 5 * 7, True))
        text = self.sim("explore", "test-fault-heeded", "--set", "times=3", "--faults", "each", "--jobs", 3)
        self.assertIn("fault nic.register:never: tried at 6 passes\n", text.out)
        self.assertRegex(text.out.splitlines()[-1], r"^explore: \d+ schedules in order of creation, 30 faults of 5 kinds at "
                                                    r"1 points, one at a time, \d+ steps, 0 violations; that is all of them$")

    def test_each_fault_is_tried_in_all_schedules_if_asked(self):
        # One pass in each of two fibers that meet at nothing else: two schedules of start and end.
        words = ["explore", "test-fault-heeded", "--faults", "each", "--json"]
        fifo = self.sim(*words).json()
        both = self.sim(*words, "--preemptions", 1).json()
        self.assertTrue(fifo["complete"] and both["complete"])
        self.assertEqual(both["runs"], 2 * fifo["runs"])
        self.assertEqual(both["tried"], fifo["tried"])

    def test_a_fault_that_changes_nothing_anywhere_is_exit_5_of_an_exploration(self):
        answer = self.sim("explore", "test-fault-ignored", "--faults", "each")
        self.assertEqual(answer.code, 5, answer)
        self.assertIn("inert fault: test-fault-ignored nic.register:refuse: fired in 2 runs, changed nothing\n", answer.out)
        self.assertIn("0 violations; that is all of them", answer.out)

    def test_a_violation_under_one_fault_does_not_hide_the_next(self):
        for jobs in (1, 2):
            answer = self.sim("explore", "test-fault-fatal", "--set", "times=2", "--faults", "each", "--jobs", jobs, "--json")
            self.assertEqual(answer.code, 1, answer)
            document = answer.json()
            wrong = [(v["invariant"], v["fault"]) for v in document["violations"]]
            self.assertEqual(wrong, [(invariant, f"nic.register:{kind}, pass {n}")
                                     for invariant, kind in (("crash", "never"), ("T-2", "refuse")) for n in (1, 2, 3, 4)])
            self.assertEqual([(t["passes"], t["complete"]) for t in document["tried"]], [(4, True)] * 5)
            self.assertTrue(document["complete"])
            # Each has a trace of its own, and every one replays.
            traces = {v["trace"] for v in document["violations"]}
            self.assertEqual(len(traces), 8)
            self.assertEqual(self.sim("replay", *traces).code, 0)

    def test_a_violation_cuts_a_search_short(self):
        document = self.sim("explore", "test-fault-fatal", "--faults", "each", "--preemptions", 1, "--json").json()
        self.assertFalse(document["complete"])
        self.assertEqual([(t["kind"], t["complete"]) for t in document["tried"]],
                         [(k, k not in ("refuse", "never")) for k in ("refuse", "limit", "delay", "never", "short")])

    def test_allocations_fail_by_site_at_each_pass(self):
        document = self.sim("explore", "budget-edge", "--faults", "each", "--jobs", 2, "--json").json()
        sites = {t["kind"]: t for t in document["tried"] if t["point"] == "heap"}
        self.assertTrue({"base.frame", "pinned.span", "pinned.builder"} <= set(sites), sites)
        self.assertTrue(all(t["complete"] and t["passes"] > 0 for t in sites.values()), sites)
        self.assertIn(("suspension", "cancel"), [(t["point"], t["kind"]) for t in document["tried"]])

    def test_list_has_the_fields_of_the_contract(self):
        document = self.sim("list", "--json", timeout=280).json()
        self.assertEqual(list(document), ["scenarios", "invariants", "faults", "models", "reached"])
        mine = next(s for s in document["scenarios"] if s["name"] == "test-right")
        self.assertEqual(list(mine), ["name", "text", "parameters", "small"])
        self.assertTrue({"id", "text", "evaluated", "exercised"} <= set(document["invariants"][0]))
        self.assertTrue({"name", "states", "transitions"} <= set(document["models"][0]))
        self.assertEqual(set(document["reached"][0]), {"id", "text", "runs"})
        self.assertGreater(sum(m["runs"] for m in document["reached"]), 0)
        self.assertGreater(sum(i["exercised"] for i in document["invariants"]), 0)
        self.assertIn("nic.register", [f["name"] for f in document["faults"]])
        self.assertEqual(self.left(), [])

    def test_pictures_of_models_are_written(self):
        answer = self.sim("models", "--dot", "d", "--svg", "s")
        self.assertEqual(answer.code, 0, answer)
        self.assertIn("d/arena.dot", self.left())
        self.assertIn("<svg", (self.dir / "s/arena.svg").read_text())


if __name__ == "__main__":
    unittest.main()
