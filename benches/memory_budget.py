#!/usr/bin/env python3
"""Runs a MOAT study of one 512² tile of generated tissue within budgets of memory and prints how much is computed again.

    benches/memory_budget.py [--pleach BINARY] [--workers N] [24000:1GB 24000:12GB 160000:2GB]

Each argument is a number of evaluations and a budget. Prints the tasks executed, wall seconds, CPU seconds of user and system, the
wall seconds of execution over the seconds of all tasks on their cores, peak RSS and page faults. Fails when the responses of
equal numbers of evaluations differ.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from overhead import MOAT

# A trajectory of the 15 parameters has one evaluation more.
TRAJECTORY = 16


def run(pleach: Path, folder: Path, evaluations: int, memory: str, workers: int) -> str:
    """Prints one row. Returns a digest of the responses."""
    study = MOAT.format(
        name="budget", seed=7, tiles="tiles/tissue_01.png", trajectories=evaluations // TRAJECTORY
    )
    (folder / "study.toml").write_text(study)
    out = folder / f"{evaluations}-{memory}"
    command = [pleach, "run", "study.toml", "--out", out, "--quiet", "--memory", memory, "--workers", str(workers)]
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    if status != 0:
        sys.exit(f"pleach failed with status {status}")
    found = json.loads((out / "run.json").read_text())
    task_seconds = sum(operation["seconds"] for operation in found["operations"])
    cpu = usage.ru_utime + usage.ru_stime
    print(
        f"| {evaluations:,} | {memory} | {found['tasks_executed']:,} | {wall:.1f} | {usage.ru_utime:.1f} | "
        f"{usage.ru_stime:.1f} ({100 * usage.ru_stime / cpu:.0f} %) | {task_seconds / workers:.1f} | "
        f"{found['execution_seconds'] * workers / task_seconds:.2f} | {found['peak_rss_bytes'] / 1e9:.2f} | "
        f"{usage.ru_minflt / 1e6:.2f} |",
        flush=True,
    )
    return hashlib.sha256((out / "responses.csv").read_bytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="*", metavar="EVALUATIONS:SIZE", default=["24000:1GB", "24000:12GB", "160000:2GB"])
    parser.add_argument("--pleach", default="target/release/pleach")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    pleach = Path(arguments.pleach).resolve()
    responses: dict[int, set[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tissue = [pleach, "tissue", "--out", "tiles", "--size", "512", "--count", "1"]
        subprocess.run(tissue, cwd=folder, check=True, capture_output=True)
        print(
            "| evaluations | budget | tasks executed | wall s | user s | system s | task s / cores | "
            "execution / (task s / cores) | peak RSS, GB | page faults, millions |"
        )
        print("|" + " --- |" * 10)
        for one in arguments.runs:
            evaluations, memory = one.split(":")
            digest = run(pleach, folder, int(evaluations), memory, arguments.workers)
            responses.setdefault(int(evaluations), set()).add(digest)
    sys.exit(any(len(digests) > 1 for digests in responses.values()))


if __name__ == "__main__":
    main()
