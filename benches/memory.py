#!/usr/bin/env python3
"""Runs one study within several budgets of memory and prints time, bytes admitted and peak RSS of each.

    benches/memory.py STUDY.toml [--pleach BINARY] [--workers N] [--rounds R] 600MB 1GB 2GB 4GB

Fails when responses differ between budgets, when more was admitted than a budget allows, or when the peak RSS of a
process goes beyond 1.15 times its budget + 200 MB.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9}


def bytes_of(size: str) -> float:
    """The bytes of a size such as 1.5GB."""
    for unit, factor in UNITS.items():
        if size.endswith(unit):
            return float(size.removesuffix(unit)) * factor
    sys.exit(f"{size}: a number with one of {', '.join(UNITS)} is wanted")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", type=Path)
    parser.add_argument("budgets", nargs="+", metavar="SIZE")
    parser.add_argument("--pleach", default="target/release/pleach")
    parser.add_argument("--workers", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    pleach = Path(arguments.pleach).resolve()

    seconds: dict[str, list[float]] = {budget: [] for budget in arguments.budgets}
    admitted: dict[str, int] = dict.fromkeys(arguments.budgets, 0)
    resident: dict[str, int] = dict.fromkeys(arguments.budgets, 0)
    responses = set()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.rounds):
            for budget in arguments.budgets:
                out = Path(folder) / f"{number}-{budget}"
                command = [pleach, "run", arguments.study, "--out", out, "--quiet"]
                start = time.monotonic()
                subprocess.run([*command, "--workers", arguments.workers, "--memory", budget], check=True)
                seconds[budget].append(time.monotonic() - start)
                run = json.loads((out / "run.json").read_text())
                admitted[budget] = max(admitted[budget], run["peak_bytes_admitted"])
                resident[budget] = max(resident[budget], run["peak_rss_bytes"])
                responses.add((out / "responses.csv").read_bytes())

    print("| budget | seconds (median of whole processes) | most admitted, MB | peak RSS, MB |")
    print("| --- | --- | --- | --- |")
    failed = len(responses) != 1
    for budget in arguments.budgets:
        allowed = bytes_of(budget)
        failed |= admitted[budget] > allowed or resident[budget] > 1.15 * allowed + 200e6
        median = statistics.median(seconds[budget])
        print(f"| {budget} | {median:.2f} | {admitted[budget] / 1e6:.0f} | {resident[budget] / 1e6:.0f} |")
    print(f"{len(responses)} distinct responses.csv in {arguments.rounds * len(arguments.budgets)} runs")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
