"""holdfast-info as a support engineer meets it: text that fits a terminal, the document, the origin of every value, and
options that are wrong, all of them at once."""
import ctypes
import json
import os
import re
import resource
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ["HOLDFAST_BIN"])
PR_CAPBSET_DROP = 24
CAP_IPC_LOCK = 14


class Info(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.dir = Path(self._directory.name)

    def tearDown(self):
        self._directory.cleanup()

    def info(self, *words, limit=None, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "UCX_"))} | variables
        done = subprocess.run([BIN / "holdfast-info", *words], cwd=self.dir, capture_output=True, timeout=60,
                              stdin=subprocess.DEVNULL, env=environment, preexec_fn=limit)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def document(self, *words, **variables):
        code, out, err = self.info("--json", *words, **variables)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def options(self, *words, **variables):
        return {o["name"]: o for o in self.document(*words, **variables)["options"]}

    def file(self, text, name="holdfast.toml"):
        (self.dir / name).write_text(text)

    def test_text_names_what_is_there_and_fits_a_terminal(self):
        code, out, err = self.info()
        self.assertEqual((code, err), (0, ""))
        for line in out.splitlines():
            self.assertLessEqual(len(line), 80, line)
            self.assertEqual(line, line.rstrip())
        self.assertRegex(out, r"\AHoldfast \d+\.\d+\.\d+, build [0-9a-f]{40}\n")
        for heading in ("Backends", "Machine", "This process", "Options (file: none)"):
            self.assertIn(f"\n{heading}\n", out)
        for title in ("ucx", "host", "verbs", "cuda", "page size", "huge pages", "NUMA node", "may lock", "CAP_IPC_LOCK",
                      "mappings", "fork", "SIGSEGV", "SIGBUS", "SIGHUP"):
            self.assertRegex(out, rf"(?m)^  {title}\b")
        self.assertRegex(out, r"(?m)^  pinned\.registered_bytes_budget +1GiB +default$")
        self.assertRegex(out, r"(?m)^  verbs +absent: ")
        self.assertRegex(out, r"(?m)^  cuda +absent: ")

    def test_the_document_says_the_same(self):
        document = self.document()
        self.assertEqual({b["kind"]: b["state"] for b in document["backends"]},
                         {"ucx": "found", "host": "found", "verbs": "absent", "cuda": "absent"})
        ucx = document["backends"][0]
        self.assertRegex(ucx["version"], r"^\d+\.\d+\.\d+$")
        self.assertIn({"transport": "tcp", "device": "lo", "allowed": True}, ucx["lanes"])
        for backend in document["backends"]:
            self.assertTrue(backend["text"] if backend["state"] == "found" else backend["reason"])
        self.assertEqual(document["machine"]["page_bytes"], resource.getpagesize())
        process = document["process"]
        self.assertGreater(process["mappings"], 0)
        self.assertEqual(process["max_map_count"], int(Path("/proc/sys/vm/max_map_count").read_text()))
        self.assertEqual(process["signals"], {"SIGSEGV": "default", "SIGBUS": "default", "SIGHUP": "default"})
        self.assertFalse(process["memory_functions_patched"])
        self.assertIsNone(document["file"])
        for option in document["options"]:
            self.assertEqual((option["origin"], option["where"]), ("default", "default"))

    def test_a_machine_without_ucx_is_told_why(self):
        document = self.document("--transport.ucx_library", "/no/such/libucp.so")
        self.assertEqual(document["backends"][0]["state"], "absent")
        self.assertIn("/no/such/libucp.so", document["backends"][0]["reason"])
        code, out, _ = self.info("--transport.ucx_library", "/no/such/libucp.so")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^  ucx +absent: ")

    def test_transports_that_do_not_exist_are_told(self):
        ucx = self.document("--transport.transports", "moon")["backends"][0]
        self.assertEqual(ucx["state"], "absent")
        self.assertIn("moon", ucx["reason"])
        self.assertTrue(ucx["lanes"], "what is there is shown all the same")

    def test_argument_beats_variable_beats_file_beats_default(self):
        name, variable = "pinned.unmap_timeout", "HOLDFAST_PINNED_UNMAP_TIMEOUT"
        self.assertEqual(self.options()[name]["value"], "5s")
        self.file('[pinned]\n# a comment\nunmap_timeout = "1s"\n')
        option = self.options()[name]
        self.assertEqual((option["value"], option["origin"], option["where"]), ("1s", "file", "file holdfast.toml:3"))
        option = self.options(**{variable: "2s"})[name]
        self.assertEqual((option["value"], option["where"]), ("2s", f"environment {variable}"))
        option = self.options(f"--{name}", "3000ms", **{variable: "2s"})[name]
        self.assertEqual((option["value"], option["number"], option["where"]), ("3s", 3_000_000_000, f"argument --{name}"))
        code, out, _ = self.info()
        self.assertEqual(code, 0)
        self.assertIn("\nOptions (file: holdfast.toml)\n", out)
        self.assertRegex(out, r"(?m)^  pinned\.unmap_timeout +1s +file holdfast\.toml:3$")

    def test_another_file_can_be_named_and_has_to_exist(self):
        self.file('pinned.scrub_on_free = true\ntransport = { transports = ["tcp", "self"] }\n', "other.toml")
        self.file("this is not even TOML")
        options = self.options(HOLDFAST_CONFIG="other.toml")
        self.assertEqual(options["pinned.scrub_on_free"]["value"], "true")
        self.assertEqual(options["transport.transports"]["value"], "tcp,self")
        for missing in ("none.toml", "."):
            code, out, err = self.info(HOLDFAST_CONFIG=missing)
            self.assertEqual((code, out), (2, ""))
            self.assertEqual(len(err.splitlines()), 1, err)
            self.assertIn("HOLDFAST_CONFIG", err)

    def test_whatever_is_wrong_is_said_at_once_and_nothing_is_shown(self):
        self.file('[pinned]\nunmap_timeuot = "1s"\nscrub_on_free = 1\n\n[transport]\nmax_keys = 0\nlisten_address = 7\n')
        code, out, err = self.info("--pinned.unmap_retry_max", "17", HOLDFAST_TRANSPORT_PROGRESS_SPIN="50")
        self.assertEqual((code, out), (2, ""))
        # A value of the wrong kind is found before the others are compared with their ranges.
        self.assertIn("holdfast.toml:7: transport.listen_address: needs a text in quotes", err)
        self.file('[pinned]\nunmap_timeuot = "1s"\nscrub_on_free = 1\n\n[transport]\nmax_keys = 0\n')
        code, out, err = self.info("--pinned.unmap_retry_max", "17", HOLDFAST_TRANSPORT_PROGRESS_SPIN="50")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(err.splitlines(), [
            "holdfast-info: holdfast.toml:2: there is no option 'pinned.unmap_timeuot'; the nearest is pinned.unmap_timeout",
            "holdfast-info: holdfast.toml:3: pinned.scrub_on_free: '1' is neither true nor false",
            "holdfast-info: holdfast.toml:6: transport.max_keys: '0' is outside its range, from 1 to 65536",
            "holdfast-info: HOLDFAST_TRANSPORT_PROGRESS_SPIN: transport.progress_spin: '50' has no unit; with ns, us, ms, s, "
            "min or h, as 250ms, from 0s to 10ms",
            "holdfast-info: --pinned.unmap_retry_max: '17' is outside its range, from 0 to 16",
        ])

    def test_a_file_that_is_no_toml_is_refused_with_its_line(self):
        for text, line in [("[pinned]\nunmap_timeout = \n", 2), ("[pinned\n", 1), ('a = "x"\na = "y"\n', 2),
                           ("[pinned]\nunmap_timeout = \x01\n", 2), ("x" * 2000, 1)]:
            with self.subTest(text=text[:30]):
                self.file(text)
                code, out, err = self.info()
                self.assertEqual((code, out), (2, ""), err)
                self.assertRegex(err, rf"\Aholdfast-info: holdfast\.toml:{line}: [^\n]+\n\Z")
        self.file("# 65 KiB\n" + ("#" * 1000 + "\n") * 70)
        self.assertIn("too large", self.info()[2])

    def test_an_unknown_variable_is_a_warning(self):
        variables = {"HOLDFAST_PINNED_SCRUB_ON_FREEE": "true", "HOLDFAST_JOBS": "2"}
        sentence = ("the variable 'HOLDFAST_PINNED_SCRUB_ON_FREEE' means nothing and is ignored; the nearest is "
                    "HOLDFAST_PINNED_SCRUB_ON_FREE")
        self.assertIn(sentence, self.document(**variables)["warnings"])
        code, out, _ = self.info(**variables)
        self.assertEqual(code, 0)
        self.assertIn(sentence, re.sub(r"\s+", " ", out))

    def test_a_budget_that_cannot_be_locked_is_a_warning(self):
        def limit():
            # Root would keep the privilege over the start of a program.
            ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0)
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20))

        code, out, err = self.info("--json", "--pinned.registered_bytes_budget", "2MiB", limit=limit)
        self.assertEqual(code, 0, err)
        document = json.loads(out)
        self.assertFalse(document["process"]["cap_ipc_lock"])
        self.assertEqual(document["process"]["locked_bytes_soft"], 1 << 20)
        self.assertIn("may lock 1 MiB only", " ".join(document["warnings"]))
        _, out, _ = self.info("--json", "--pinned.registered_bytes_budget", "1MiB", limit=limit)
        self.assertEqual(json.loads(out)["warnings"], [])

    def test_variables_of_ucx_are_shown_as_they_were(self):
        self.assertIn("UCX_TLS=tcp", self.document(UCX_TLS="tcp")["process"]["ucx_variables"])

    def test_wrong_usage_is_one_line(self):
        for words, part in [(["--moon"], "--moon"), (["again"], "again"), (["--pinned.moon", "1"], "--pinned.moon"),
                            (["--pinned.unmap_timeout"], "--pinned.unmap_timeout"),
                            (["--pinned.unmap_timeout", "soon"], "'soon'"),
                            (["--pinned.initial_arena_bytes", "64M"], "write MiB"),
                            (["--pinned.initial_arena_bytes", "2GiB"], "more than pinned.max_arena_bytes")]:
            with self.subTest(words=words):
                code, out, err = self.info(*words)
                self.assertEqual((code, out), (2, ""), err)
                self.assertEqual(len(err.splitlines()), 1, err)
                self.assertTrue(err.startswith("holdfast-info: "), err)
                self.assertIn(part, err)

    def test_help_names_every_option_and_fits_a_terminal(self):
        code, out, err = self.info("--help")
        self.assertEqual((code, err), (0, ""))
        for name in self.options():
            self.assertIn(f"  --{name}", out)
        self.assertLessEqual(max(map(len, out.splitlines())), 80)
        code, out, _ = self.info("--version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"\Aholdfast-info \d+\.\d+\.\d+\n\Z")

    def test_standard_output_that_is_full_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / "holdfast-info"], cwd=self.dir, stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"standard output", done.stderr)


if __name__ == "__main__":
    unittest.main()
