"""holdfast-smoke leaves nothing behind: interrupted, terminated or killed in the middle, with peers that serve or stand
still, no process and no unfinished file of it remains."""
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

BIN = Path(os.environ["HOLDFAST_BIN"])
BOUND_S = 120


def wait_for(condition, what):
    until = time.monotonic() + BOUND_S
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > until:
            raise AssertionError(f"not within {BOUND_S} s: {what}")
        time.sleep(0.005)


def children_of(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(pid):
    """Whether it still runs: a process that ended and that its new parent has not fetched yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class SmokeInterrupted(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.dir = Path(self._directory.name)

    def tearDown(self):
        self._directory.cleanup()

    def start(self):
        return subprocess.Popen([BIN / "holdfast-smoke", "--only", "ucx", "--bytes", "1MiB", "--seconds", "600",
                                 "--record", "events.jsonl"],
                                cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def peers_of(self, process):
        """Both peers, once they serve: the row about them is printed then."""
        while line := process.stdout.readline():
            if line.split()[1:3] == [b"peers", b"ok"]:
                return children_of(process.pid)
        self.fail("it ended before its peers served: " + process.stderr.read().decode())

    def ended_by(self, number, prepare=lambda peers: None):
        process = self.start()
        try:
            peers = self.peers_of(process)
            self.assertEqual(len(peers), 2)
            prepare(peers)
            process.send_signal(number)
            process.communicate(timeout=BOUND_S)
        finally:
            process.kill()
            process.wait()
        self.assertEqual(process.returncode, -number)
        for peer in peers:
            wait_for(lambda peer=peer: not is_alive(peer), f"peer {peer} ended")
        return sorted(p.name for p in self.dir.iterdir())

    def test_ctrl_c_ends_the_peers_and_removes_the_unfinished_recording(self):
        self.assertEqual(self.ended_by(signal.SIGINT), [])

    def test_termination_ends_peers_that_stand_still(self):
        def stop(peers):
            for peer in peers:
                os.kill(peer, signal.SIGSTOP)

        self.assertEqual(self.ended_by(signal.SIGTERM, stop), [])

    def test_kill_ends_the_peers_too_even_one_that_stands_still(self):
        # The file that was being written stays, under a name that says so: nobody was left to remove it.
        left = self.ended_by(signal.SIGKILL, lambda peers: os.kill(peers[0], signal.SIGSTOP))
        self.assertEqual([name.partition("-")[0] for name in left], ["events.jsonl.part"])

    def test_a_peer_that_dies_unasked_is_a_failed_row_and_the_rest_ends_in_order(self):
        process = self.start()
        try:
            os.kill(self.peers_of(process)[0], signal.SIGKILL)
            out, err = process.communicate(timeout=3 * BOUND_S)
        finally:
            process.kill()
            process.wait()
        self.assertEqual(process.returncode, 1, err)
        rows = [line.split() for line in out.decode().splitlines()]
        self.assertTrue(any("failed" in row and "get" in row for row in rows), out)
        self.assertTrue(any(row[1:3] == ["shutdown", "ok"] for row in rows), out)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["events.jsonl"])
        self.assertIn(b'"outcome":"violation"', (self.dir / "events.jsonl").read_bytes().splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
