#!/usr/bin/env python3
"""The archetype refuses what the platform contract does not offer.

A third side that offered too much would prove nothing. Each line below is something that works with std, or on one of
the other sides, by accident. It has to fail on the archetype, and what it is a variation of has to compile: so a
spelling mistake here is no proof. All of them are compiled at once, each in a function and on a line of its own, and
every line has to be complained of.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["HOLDFAST_BUILD"])
SOURCE = pathlib.Path(os.environ["HOLDFAST_SOURCE"])

PRELUDE = """
#include <holdfast/platform_contract.hpp>
using namespace holdfast;
inline constexpr lock_class kind{700, false, "kind"};
struct timer final : platform::timer_item { void run() noexcept override {} void drop() noexcept override {} };
enum class color { red, blue };
struct parts {
  platform::host& host;
  platform::atomic<int>& a;
  const platform::atomic<int>& ca;
  platform::atomic<color>& e;
  platform::atomic<bool>& b;
  platform::mutex& m;
  platform::shared_mutex& s;
  platform::condition_variable& c;
  platform::ref_count& r;
  platform::thread& t;
  platform::executor& x;
  timer& i;
  platform::poller& p;
  platform::thread_slot<int>& slot;
  platform::driver_library& d;
  int n = 0;
  color k = color::red;
  bool f = false;
};
"""

# What compiles, and beside it what must not.
PAIRS = [
    ("a.load();", ["a.wait(0);", "a.notify_one();", "a.is_lock_free();", "n = a;", "++a;", "a += 1;", "a = 1;"]),
    ("a.fetch_add(1);", ["ca.fetch_add(1);", "e.fetch_add(color::blue);", "b.fetch_or(true);", "a.fetch_xor(1);"]),
    ("a.compare_exchange_strong(n, 1);", ["a.compare_exchange_strong(1, 1);", "std::atomic<int>& o = a; o.load();"]),
    ("e.store(k); b.exchange(f);", ["auto copy = e;"]),
    ("platform::atomic<int*> q{nullptr};", ["platform::atomic<double> q{0};", "struct w { int v; }; platform::atomic<w> q;"]),
    ("m.lock(); m.unlock();", ["m.native_handle();", "auto copy = m;", "m.try_lock_for(std::chrono::seconds(1));"]),
    ("platform::mutex own(kind);", ["platform::mutex own;"]),
    ("s.lock_shared(); s.unlock_shared();", ["s.try_lock_shared();", "s.native_handle();"]),
    ("c.wait(m);", ["c.wait(s);", "c.wait(m, [] { return true; });", "c.wait_for(m, std::chrono::seconds(1));"]),
    ("c.wait_until(m, platform::never);", ["c.wait_until(m, std::chrono::steady_clock::now());"]),
    ("f = r.decrement();", ["r.count_ = 1;", "auto copy = r;", "n = r;"]),
    ("t.join();", ["t.detach();", "t.native_handle();", "t.get_id();", "platform::thread direct([] {});"]),
    ("f = platform::this_thread_number() == 1;", ["f = platform::this_thread == 1;"]),
    ("f = x.post(i) && x.arm(i, platform::never) && x.cancel(i);",
     ["i.heap_index = 0;", "i.deadline = platform::never;", "x.pool_ = nullptr;", "x.get();", "platform::executor none;"]),
    ("x.execute([] {});", ["x.dispatch([] {});", "x.running_in_this_thread();"]),
    ("auto base = host.pages().allocate(4096);", ["platform::pages own;", "auto copy = host.pages();"]),
    ("auto now = host.clock().now();", ["platform::clock own;", "auto now = platform::clock::now();"]),
    ("auto seed = host.identity_seed().draw();", ["platform::identity_seed own;"]),
    ("f = host.executor() == x;", ["platform::host own;", "platform::host own(1);", "host.stop();"]),
    ("f = p.add(1);", ["p.event_descriptor_ = 1;", "platform::poller own;", "auto copy = p;", "p.remove(1);"]),
    ("f = p.wait(platform::never) & platform::wake_cause::woken;", ["n = p.wait(platform::never);"]),
    ("f = slot.set(&n);", ["slot = &n;", "*slot = 1;"]),
    ("f = d.symbol(\"x\") != nullptr;", ["d.handle_ = nullptr;", "platform::driver_library own;"]),
    ("f = platform::heap_fault(\"x\");", ["static_assert(!platform::heap_fault(\"x\"));"]),
]


def compile_command():
    """The archetype's own command, without its output and its source."""
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    for entry in entries:
        if "holdfast_archetype.dir" in entry["command"] and entry["file"].endswith(".cpp"):
            words = shlex.split(entry["command"])
            kept, skip = [], 0
            for word in words:
                if skip:
                    skip -= 1
                elif word in ("-o", "-MT", "-MF", "-include"):
                    skip = 1
                elif word not in ("-MD", "-c", "-Winvalid-pch", "-Werror", entry["file"]) and "ccache" not in word:
                    kept.append(word)
            # The launcher comes first: keep from the compiler on.
            start = next(i for i, word in enumerate(kept) if pathlib.Path(word).name.startswith(("c++", "g++", "clang++")))
            return kept[start:]
    sys.exit("archetype_refuses: no command of holdfast_archetype in compile_commands.json")


def compile_lines(command, lines):
    """The numbers of the lines that the compiler complains of, and what it said."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "cases.cpp"
        functions = [f"struct case{i} : parts {{ void run() {{ {line} }} }};" for i, line in enumerate(lines)]
        path.write_text(PRELUDE + "\n".join(functions) + "\n")
        done = subprocess.run(command + [str(path)], capture_output=True, text=True)
        first = PRELUDE.count("\n") + 1
        # Of the file's own lines only: an error inside a template of a header names the line that asked for it.
        named = {int(n) - first for n in re.findall(r"cases[.]cpp:(\d+):\d+:   required from here", done.stderr)}
        named |= {int(n) - first for n in re.findall(r"cases[.]cpp:(\d+):\d+: (?:fatal )?error:", done.stderr)}
        return named, done.returncode, done.stderr


def main():
    command = compile_command() + ["-fsyntax-only", "-Wno-unused", "-fmax-errors=0", "-fdiagnostics-color=never"]
    if not any("tests/archetype" in word for word in command):
        sys.exit("archetype_refuses: the command does not look into tests/archetype")

    offered = [good for good, _ in PAIRS]
    _, code, said = compile_lines(command, offered)
    if code != 0:
        print(f"archetype_refuses: what the contract offers does not compile:\n{said}", file=sys.stderr)
        return 1
    refused = [bad for _, bads in PAIRS for bad in bads]
    named, _, _ = compile_lines(command, refused)
    accepted = [line for i, line in enumerate(refused) if i not in named]
    for line in accepted:
        print(f"archetype_refuses: compiles, although the contract does not offer it: {line}", file=sys.stderr)
    print(f"archetype_refuses: {len(offered)} offered, {len(refused)} refused, {len(accepted)} wrong")
    return 1 if accepted else 0


if __name__ == "__main__":
    sys.exit(main())
