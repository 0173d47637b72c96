#!/usr/bin/env python3
"""Runs the benchmark programs and prints one table, or with --json one document.

A benchmark program takes --json and prints a list of rows on stdout:
  {"id", "ours", "unit", "others": {NAME: X}, "ratio_to_best", "goal", "met"}

usage: bench_table.py --bin DIR [--json] [NAME...]
"""

import argparse
import json
import os
import subprocess
import sys


def figure(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "" if value is None else str(value)
    if value and (abs(value) >= 1e6 or abs(value) < 0.01):
        return f"{value:.2e}"
    return f"{value:.4g}"


def table(rows):
    lines = [("id", "ours", "unit", "others", "ratio", "goal", "met")]
    for row in rows:
        others = ", ".join(f"{name} {figure(x)}" for name, x in (row.get("others") or {}).items())
        met = row.get("met")
        lines.append((str(row["id"]), figure(row["ours"]), str(row.get("unit", "")), others,
                      figure(row.get("ratio_to_best")), figure(row.get("goal")),
                      "" if met is None else "yes" if met else "NO"))
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()

    try:
        programs = sorted(os.listdir(arguments.bin))
    except FileNotFoundError:
        programs = []
    unknown = [name for name in arguments.names if name not in programs]
    if unknown or not programs:
        print(f"bench: no benchmark {', '.join(unknown) or 'was built'}; there are: {', '.join(programs) or 'none'}",
              file=sys.stderr)
        return 2
    rows, failed = [], []
    for name in arguments.names or programs:
        print(f"==> {name}", file=sys.stderr)
        done = subprocess.run([os.path.join(arguments.bin, name), "--json"], stdout=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL)
        try:
            printed = json.loads(done.stdout) if done.returncode == 0 else None
        except ValueError:
            printed = None
        if printed is None:
            failed.append(name)
            print(f"bench: {name} ended with {done.returncode} and printed no rows", file=sys.stderr)
        else:
            rows += printed
    if arguments.json:
        json.dump(rows, sys.stdout, indent=1)
        print()
    else:
        table(rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
