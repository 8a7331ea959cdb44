#!/usr/bin/env python3
"""RTMA against RMSR within the same memory: paper 003, section IV.B and Fig. 7.

    benches/rmsr.py STUDY.toml [--pleach BINARY] [--rounds R] [--paths 2 4 8] [--bucket-size 28]

RTMA(Y, X) merges X stage instances a bucket and runs Y paths at a time, Y = X as in the paper: whatever is merged is in
memory at once. What it holds at most is the budget; within that, RMSR(Y, 28) merges more and still runs Y paths. For the
price of RMSR's order alone, RMSR(Y, X) runs one path of each bucket at a time.

Threads are Y; with fewer processors than that all variants share them, so that ratios are of work and not of threads.
Fails when responses differ, or when more was admitted than the budget.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def run(pleach: Path, study: Path, out: Path, paths: int, size: int, active: int, budget: int | None) -> dict:
    """One run; its record with the wall seconds of the whole process."""
    command = [pleach, "run", study, "--out", out, "--quiet", "--strategy", "rtma", "--reuse", "tree"]
    command += ["--workers", str(paths), "--active-paths", str(active), "--max-bucket-size", str(size)]
    command += ["--memory", f"{budget}B" if budget else "64GB"]
    start = time.monotonic()
    subprocess.run(command, check=True)
    seconds = time.monotonic() - start
    record = json.loads((out / "run.json").read_text())
    return record | {"process_seconds": seconds, "responses": (out / "responses.csv").read_bytes()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", type=Path)
    parser.add_argument("--pleach", type=Path, default=Path("target/release/pleach"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--paths", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--bucket-size", type=int, default=28)
    arguments = parser.parse_args()
    pleach, study, size = arguments.pleach.resolve(), arguments.study, arguments.bucket_size
    responses, failed = set(), False
    print("| variant | budget, MB | admitted, MB | peak RSS, MB | tasks | seconds | RTMA's by these |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for paths in arguments.paths:
            out = Path(folder) / "out"
            budget = run(pleach, study, out, paths, paths, paths, None)["peak_bytes_admitted"]
            variants = {
                f"RTMA({paths}, {paths})": (paths, paths),
                f"RMSR({paths}, {paths}), one path a bucket": (paths, 1),
                f"RMSR({paths}, {size})": (size, paths),
            }
            records: dict[str, list[dict]] = {name: [] for name in variants}
            for number in range(arguments.rounds):
                for name, (merged, active) in variants.items():
                    out = Path(folder) / f"{name}-{number}"
                    records[name].append(run(pleach, study, out, paths, merged, active, budget))
            median = {
                name: statistics.median(record["process_seconds"] for record in runs)
                for name, runs in records.items()
            }
            plain = median[f"RTMA({paths}, {paths})"]
            for name, runs in records.items():
                admitted = max(record["peak_bytes_admitted"] for record in runs)
                resident = max(record["peak_rss_bytes"] for record in runs)
                failed |= admitted > budget
                responses.update(record["responses"] for record in runs)
                print(
                    f"| {name} | {budget / 1e6:.0f} | {admitted / 1e6:.0f} | {resident / 1e6:.0f} "
                    f"| {runs[0]['tasks_executed']} | {median[name]:.1f} | {plain / median[name]:.2f} |",
                    flush=True,
                )
    print(f"{len(responses)} distinct responses.csv")
    sys.exit(1 if failed or len(responses) != 1 else 0)


if __name__ == "__main__":
    main()
