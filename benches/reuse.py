#!/usr/bin/env python3
"""Runs studies at every level of reuse, side by side, and compares time and work.

    benches/reuse.py STUDY.toml [--pleach target/release/pleach] [--workers 2] [--rounds 1]

Rounds are interleaved. `task-seconds` are the seconds of all tasks, digests and access to the cache included; `work` is
relative to `stage`. The last two rows run the study with a new cache, and once more with the same. Fails when a
`responses.csv` differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = {
    "none": ["--strategy", "none"],
    "stage": ["--strategy", "stage"],
    "rtma": ["--strategy", "rtma", "--reuse", "tree"],
    "trtma": ["--strategy", "trtma", "--reuse", "tree"],
    "trtma, dataflow": ["--strategy", "trtma", "--reuse", "dataflow"],
    "trtma, value": ["--strategy", "trtma", "--reuse", "value"],
    "ranges, dataflow": ["--strategy", "ranges", "--reuse", "dataflow"],
    "ranges, value": ["--strategy", "ranges", "--reuse", "value"],
    "value, new cache": ["--cache"],
    "value, again": ["--cache"],
}


def main() -> int:
    """Runs and compares."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("study", type=Path)
    arguments.add_argument("--pleach", type=Path, default=Path("target/release/pleach"))
    arguments.add_argument("--workers", default="2")
    arguments.add_argument("--rounds", type=int, default=1)
    given = arguments.parse_args()

    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    work: dict[str, list[float]] = {way: [] for way in WAYS}
    records: dict[str, dict] = {}
    digests = set()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.rounds):
            for way, options in WAYS.items():
                out = Path(folder) / f"{number}-{way}"
                cache = [Path(folder) / f"{number}-cache"] if "--cache" in options else []
                command = [given.pleach, "run", given.study, "--out", out, "--quiet", "--workers", given.workers]
                start = time.perf_counter()
                subprocess.run([*command, *options, *cache], check=True)
                seconds[way].append(time.perf_counter() - start)
                records[way] = json.loads((out / "run.json").read_text())
                work[way].append(sum(operation["seconds"] for operation in records[way]["operations"]))
                digests.add(hashlib.sha256((out / "responses.csv").read_bytes()).hexdigest())

    print("| way | wall s | of none | task-seconds | of stage | tasks executed | peak RSS, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    median = statistics.median
    for way, record in records.items():
        wall, spent = median(seconds[way]), median(work[way])
        of_none, of_stage = wall / median(seconds["none"]), spent / median(work["stage"])
        rss = record["peak_rss_bytes"] / 1e6
        print(
            f"| {way} | {wall:.2f} | {of_none:.3f} | {spent:.2f} | {of_stage:.3f} | {record['tasks_executed']} | {rss:.0f} |"
        )
    print(f"\n{len(digests)} distinct responses.csv in {given.rounds * len(WAYS)} runs")
    return 0 if len(digests) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
