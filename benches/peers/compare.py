#!/usr/bin/env python3
"""Runs one study with pleach and with its peer, side by side, and compares responses and time.

    benches/peers/compare.py STUDY.toml --pleach target/release/pleach --workers N [--evaluations K] [--rounds R]
                             [--variants plain iterated cached both]

First pleach alone, for the parameter sets and to warm the disk; then rounds, in which pleach and each variant of the
peer take turns, so that a machine that slows down slows all of them. All evaluate the same parameter sets. Prints wall
seconds, the ratio of each round (smallest, median, largest) and how close the responses are. pleach's time is that of
its whole process, the peer's begins when its workers are ready. Exit code 1 when a response is missing or the
correlation is below 0.95.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

VARIANTS = {
    "plain": [],
    "iterated": ["--reconstruction", "opencv"],
    "cached": ["--cache-normalized"],
    "both": ["--reconstruction", "opencv", "--cache-normalized"],
}
PLAIN = Path(__file__).resolve().with_name("plain.py")
LEAST_CORRELATION = 0.95

Responses = dict[tuple[str, str], float]


def timed(command: list[object]) -> float:
    """Wall seconds of a command; what it prints is shown only when it fails."""
    start = time.perf_counter()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return time.perf_counter() - start


def responses(folder: Path) -> Responses:
    """The first metric of each run, by evaluation and tile."""
    with (folder / "responses.csv").open(newline="") as lines:
        _, *rows = csv.reader(lines)
    return {(evaluation, tile): float(value) for evaluation, tile, value, *_ in rows}


def first_rows(table: Path, rows: int | None) -> Path:
    """A table of the first rows of another, beside it."""
    cut = table.with_name("first.csv")
    lines = table.read_text().splitlines(keepends=True)
    cut.write_text("".join(lines[: None if rows is None else rows + 1]))
    return cut


def closeness(ours: Responses, theirs: Responses) -> tuple[float, float]:
    """Correlation of two sets of responses, and the largest difference."""
    a, b = np.array([(ours[run], theirs[run]) for run in ours]).T
    constant = a.std() == 0 or b.std() == 0
    correlation = float(np.array_equal(a, b)) if constant else float(np.corrcoef(a, b)[0, 1])
    return correlation, float(np.abs(a - b).max())


def main() -> int:
    """Runs and compares."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("study", type=Path)
    arguments.add_argument("--pleach", type=Path, default=Path("target/release/pleach"))
    arguments.add_argument("--strategy", help="of pleach; its default where none is given")
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--evaluations", type=int, help="only the first K parameter sets")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=["plain", "both"])
    given = arguments.parse_args()

    seconds: dict[str, list[float]] = {name: [] for name in ["pleach", *given.variants]}
    records = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pleach = [given.pleach, "run", given.study, "--workers", given.workers, "--quiet"]
        timed([*pleach, "--out", folder / "samples"])
        table = first_rows(folder / "samples" / "samples.csv", given.evaluations)
        if given.evaluations is not None:
            pleach += ["--parameter-sets", table]
        if given.strategy is not None:
            pleach += ["--strategy", given.strategy]
        peer = [sys.executable, PLAIN, given.study, "--workers", given.workers, "--parameter-sets", table]
        for _ in range(given.rounds):
            seconds["pleach"].append(timed([*pleach, "--out", folder / "pleach", "--overwrite"]))
            for name in given.variants:
                timed([*peer, *VARIANTS[name], "--out", folder / name])
                records[name] = json.loads((folder / name / "run.json").read_text())
                seconds[name].append(records[name]["study_seconds"])
        ours = responses(folder / "pleach")
        theirs = {name: responses(folder / name) for name in given.variants}

    whole = True
    print(f"{len(ours)} runs, {given.workers} workers, {given.rounds} rounds\n")
    print("| | wall s: min | median | max | times pleach: min | median | max | correlation | largest difference |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, walls in seconds.items():
        cells = spread(walls, 2)
        if name != "pleach":
            cells += spread([wall / base for wall, base in zip(walls, seconds["pleach"], strict=True)], 1)
            same_runs = ours.keys() == theirs[name].keys()
            correlation, largest = closeness(ours, theirs[name]) if same_runs else (0.0, 1.0)
            whole &= same_runs and correlation >= LEAST_CORRELATION
            cells += [f"{correlation:.6f}", f"{largest:.2g}"]
        print(f"| {name} | {' | '.join(cells)}{' |' * (9 - len(cells))}")
    for name, record in records.items():
        parts = {part: 1e3 * value for part, value in record["seconds_a_run"].items()}
        print(f"\n{name}: {sum(parts.values()):.1f} ms a run in the last round:", end=" ")
        print(", ".join(f"{part} {value:.1f}" for part, value in parts.items()))
    return 0 if whole else 1


def spread(values: list[float], digits: int) -> list[str]:
    """Smallest, median and largest, to be read."""
    return [f"{value:.{digits}f}" for value in (min(values), statistics.median(values), max(values))]


if __name__ == "__main__":
    sys.exit(main())
