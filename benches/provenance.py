#!/usr/bin/env python3
"""Measures the provenance records of a MOAT study of one tile: their bytes, the time to answer from them, and the cost of writing.

    benches/provenance.py [--pleach BINARY] [--before BINARY] [--tile PNG] [--evaluations N] [--rounds N] [--workers N]

Without a tile, generates one of 512² px. `--before` is a binary without records: both run the study in turn, `--rounds` times, and
the ratios of wall seconds, CPU seconds and peak RSS are those of the medians. Fails when responses or counts differ.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from overhead import MOAT

# A trajectory of the 15 parameters has one evaluation more.
TRAJECTORY = 16


def run(pleach: Path, folder: Path, out: Path, workers: int) -> dict[str, float]:
    """Runs the study. Returns wall and CPU seconds and peak RSS in bytes."""
    shutil.rmtree(out, ignore_errors=True)
    command = [pleach, "run", "study.toml", "--out", out, "--quiet", "--workers", str(workers)]
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"pleach failed with status {status}")
    wall = time.monotonic() - start
    return {"wall s": wall, "CPU s": usage.ru_utime + usage.ru_stime, "peak RSS": usage.ru_maxrss * 1024}


def explain(pleach: Path, out: Path, *options: str) -> tuple[dict, float]:
    """Asks the records. Returns the answer and the seconds that it took."""
    start = time.monotonic()
    answer = subprocess.run([pleach, "explain", out, "--json", *options], check=True, capture_output=True)
    return json.loads(answer.stdout), time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pleach", default="target/release/pleach")
    parser.add_argument("--before")
    parser.add_argument("--tile")
    parser.add_argument("--evaluations", type=int, default=24_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    pleach = Path(arguments.pleach).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tile = "tiles/tissue_01.png"
        if arguments.tile:
            tile = str(Path(arguments.tile).resolve())
        else:
            tissue = [pleach, "tissue", "--out", "tiles", "--size", "512", "--count", "1"]
            subprocess.run(tissue, cwd=folder, check=True, capture_output=True)
        trajectories = arguments.evaluations // TRAJECTORY
        (folder / "study.toml").write_text(MOAT.format(name="records", seed=7, tiles=tile, trajectories=trajectories))
        after, before = folder / "after", folder / "before"
        rows: dict[str, list[dict[str, float]]] = {"after": [], "before": []}
        for _ in range(arguments.rounds):
            if arguments.before:
                rows["before"].append(run(Path(arguments.before).resolve(), folder, before, arguments.workers))
            rows["after"].append(run(pleach, folder, after, arguments.workers))
        record = json.loads((after / "run.json").read_text())
        totals, all_seconds = explain(pleach, after)
        one, one_seconds = explain(pleach, after, "--evaluation", "12")
        if totals["tasks_executed"] != record["tasks_executed"] or any(
            totals["tasks_reused"].get(level, 0) != record["tasks_reused"].get(level, 0)
            for level in ("dataflow", "value", "cache")
        ):
            sys.exit(f"the records count {totals}, run.json {record}")
        recorded = sum(task["executed"] + sum(task["reused"].values()) for task in totals["tasks"])
        instances = (arguments.evaluations // TRAJECTORY * TRAJECTORY + 1) * len(one["runs"][0]["tasks"])
        bytes_ = (after / "provenance.bin").stat().st_size
        print(f"evaluations {arguments.evaluations:,}; tasks of all runs {instances:,}; recorded {recorded:,}")
        print(f"records: {bytes_:,} bytes, {bytes_ / recorded:.2f} a record, {bytes_ / instances:.2f} a task of a run")
        print(f"explain: totals {all_seconds:.2f} s, one evaluation {one_seconds:.2f} s")
        for value in rows["after"][0]:
            medians = {kind: statistics.median(row[value] for row in rows[kind]) for kind in rows if rows[kind]}
            ratio = f", {medians['after'] / medians['before']:.3f} times" if "before" in medians else ""
            print(f"{value}: {medians['after']:.4g}{ratio}; all: {[round(row[value], 2) for row in rows['after']]}"
                  f" after {[round(row[value], 2) for row in rows['before']]}")
        if arguments.before:
            digests = {hashlib.sha256((out / "responses.csv").read_bytes()).hexdigest() for out in (after, before)}
            sys.exit(len(digests) != 1)


if __name__ == "__main__":
    main()
