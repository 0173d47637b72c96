#!/usr/bin/env python3
"""Two builds of holdfast-sim must agree on every seed of every scenario.

A difference is a miscompiled coroutine, an argument list with two scheduling points, or an order that
depends on an address: each of them makes a trace from one machine worthless on another.

`campaign --json` carries a `fingerprint` over the fingerprints of its runs in the order of their
seeds. Where it differs the range is halved until one seed is left, and its first differing event is
named.

usage: fingerprint_agreement.py [--seeds A..B] SIM SIM
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    # 5 = nothing violated but something unreached, which a thousand seeds of one scenario may be.
    if done.returncode not in (0, 5):
        sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stderr}")
    return done.stdout


def scenarios(sim):
    return [s["name"] for s in json.loads(run([sim, "list", "scenarios", "--json"]))["scenarios"]]


def campaign(sim, scenario, first, last):
    document = json.loads(run([sim, "campaign", scenario, "--seeds", f"{first}..{last}", "--jobs", "1", "--json"]))
    if "fingerprint" not in document:
        sys.exit(f"{sim} campaign --json carries no fingerprint, so there is nothing to compare")
    return document["fingerprint"], document["runs"], document["steps"]


def first_difference(sims, scenario, first, last):
    while first < last:
        middle = (first + last) // 2
        if campaign(sims[0], scenario, first, middle) != campaign(sims[1], scenario, first, middle):
            last = middle
        else:
            first = middle + 1
    return first


def events(sim, scenario, seed):
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "run.jsonl")
        run([sim, "run", scenario, "--seed", str(seed), "--events", "--trace", trace])
        with open(trace, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    return [line for line in lines if line.get("line") == "event"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1..1000")
    parser.add_argument("sims", nargs=2)
    arguments = parser.parse_args()
    first, last = (int(n) for n in arguments.seeds.split(".."))
    sims = [os.path.abspath(sim) for sim in arguments.sims]

    names = scenarios(sims[0])
    if names != scenarios(sims[1]):
        sys.exit("the two builds list different scenarios")
    if not names:
        sys.exit("there are no scenarios to compare")

    wrong = 0
    for name in names:
        ours, theirs = (campaign(sim, name, first, last) for sim in sims)
        if ours == theirs:
            print(f"{name}: {ours[1]} runs agree, {ours[2]} steps")
            continue
        wrong += 1
        seed = first_difference(sims, name, first, last)
        print(f"{name}: the builds differ, first at seed {seed}", file=sys.stderr)
        pairs = zip(events(sims[0], name, seed), events(sims[1], name, seed))
        for number, (left, right) in enumerate(pairs):
            if left != right:
                print(f"  event {number}:\n    {sims[0]}: {left}\n    {sims[1]}: {right}", file=sys.stderr)
                break
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
