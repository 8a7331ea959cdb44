#!/usr/bin/env python3
"""Runs one study by every strategy, with 1 and 2 workers, side by side, and compares.

    benches/strategies.py STUDY.toml [--rounds 3] [--pleach target/release/pleach] [--max-bucket-size N]

Prints wall seconds (median of the rounds, which are interleaved so that a machine that slows down slows all of
them), the ratio to `none`, tasks executed, the most bytes of regions held, and whether every `responses.csv` is the
same, byte for byte. Exit code 1 when one is not.
"""

import argparse
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

STRATEGIES = ["none", "stage", "naive", "rtma", "trtma", "ranges", "hrb"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("study")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    arguments.add_argument("--pleach", default="target/release/pleach")
    arguments.add_argument("--max-bucket-size", default="16")
    given = arguments.parse_args()

    runs, digests = {}, set()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.rounds):
            for workers in given.workers:
                for strategy in STRATEGIES:
                    out = pathlib.Path(folder) / f"{strategy}-{workers}"
                    command = [given.pleach, "run", given.study, "--out", out, "--overwrite", "--json", "--quiet"]
                    command += ["--strategy", strategy, "--workers", str(workers)]
                    command += ["--max-bucket-size", given.max_bucket_size, "--reuse", "tree"]
                    done = subprocess.run(command, capture_output=True, check=True)
                    runs.setdefault((strategy, workers), []).append(json.loads(done.stdout))
                    digests.add(hashlib.sha256((out / "responses.csv").read_bytes()).hexdigest())

    print("| strategy | workers | wall s | of none | tasks executed | reused | regions held, MB | peak RSS, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for (strategy, workers), records in runs.items():
        wall = statistics.median(record["wall_seconds"] for record in records)
        base = statistics.median(record["wall_seconds"] for record in runs["none", workers])
        record = records[0]
        held = max(record["peak_bytes_admitted"] for record in records) / 1e6
        rss = max(record["peak_rss_bytes"] for record in records) / 1e6
        reused = sum(record["tasks_reused"].values())
        tasks = record["tasks_executed"]
        print(
            f"| {strategy} | {workers} | {wall:.2f} | {wall / base:.3f} | {tasks} | {reused} | {held:.1f} | {rss:.0f} |"
        )
    print(f"\n{len(digests)} distinct responses.csv in {given.rounds * len(runs)} runs")
    return 0 if len(digests) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
