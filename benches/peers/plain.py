#!/usr/bin/env python3
"""Runs a study of the nuclear segmentation with what Python has for it: Dask, OpenCV, scikit-image, SALib.

    benches/peers/plain.py STUDY.toml --workers N --out DIR [--parameter-sets samples.csv] [--evaluations K]
                           [--reconstruction opencv] [--cache-normalized]

One task a run, on N processes of one thread: it reads the tile, normalizes it, segments it, compares the mask with the
reference. With `--parameter-sets` the parameter sets are those of pleach's `samples.csv`, else SALib samples them. Writes
`responses.csv` in pleach's form, `indices.csv` (Morris, by SALib) and `run.json`, and prints wall seconds and where a
run spends them.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import cv2
import dask
import numpy as np
import SALib.analyze.morris

import nuclei
import study as studies

# Workers keep the memory of an array for the next one: to ask the system for it anew can cost more than to compute.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}

# Within which all workers have imported what they need, on a slow machine too.
START_SECONDS = 120


class Run(NamedTuple):
    """What one run gives back."""

    response: dict[str, float]
    seconds: dict[str, float]


class Options(NamedTuple):
    """How every run is done."""

    normalize: bool
    reconstruction: str


def read(tile: Path) -> nuclei.Image:
    """The tile, B, G, R."""
    image = cv2.imread(str(tile), cv2.IMREAD_COLOR)
    if image is None:
        raise OSError(f"{tile}: not an image that OpenCV reads")
    return image


def prepared(tile: Path, options: Options) -> nuclei.Image:
    """The tile, normalized if wanted."""
    return nuclei.normalize(read(tile)) if options.normalize else read(tile)


def reference(
    tile: Path, options: Options, defaults: dict[str, float], normalized: nuclei.Image | None
) -> nuclei.Image:
    """The mask at default parameters."""
    image = prepared(tile, options) if normalized is None else normalized
    return nuclei.segment(image, defaults, nuclei.RECONSTRUCTIONS[options.reconstruction], nuclei.Clock())


def read_mask(file: Path) -> nuclei.Image:
    """A mask from a file: any value above 0 is object."""
    labels = cv2.imread(str(file), cv2.IMREAD_UNCHANGED)
    if labels is None:
        raise OSError(f"{file}: not an image that OpenCV reads")
    return cv2.compare(labels if labels.ndim == 2 else labels.max(axis=2), 0, cv2.CMP_GT)


def run(
    tile: Path,
    options: Options,
    parameters: dict[str, float],
    truth: nuclei.Image,
    normalized: nuclei.Image | None,
) -> Run:
    """One run, from the tile's file to its response."""
    clock = nuclei.Clock()
    if normalized is None:
        image = read(tile)
        clock.stop("read")
        if options.normalize:
            image = nuclei.normalize(image)
            clock.stop("normalize")
    else:
        image = normalized
    mask = nuclei.segment(image, parameters, nuclei.RECONSTRUCTIONS[options.reconstruction], clock)
    response = nuclei.compare(mask, truth)
    clock.stop("compare")
    return Run(response, clock.seconds)


def execute(
    pool: ProcessPoolExecutor, study: studies.Study, samples: list[dict[str, float]], options: Options, cache: bool
) -> dict[tuple[int, str], Run]:
    """All runs, by evaluation (from 1) and tile."""
    runs = {}
    for name, tile in study.tiles.items():
        normalized = dask.delayed(prepared)(tile, options) if cache else None
        if study.masks is None:
            truth = dask.delayed(reference)(tile, options, study.defaults, normalized)
        else:
            truth = dask.delayed(read_mask)(study.masks[name])
        for evaluation, parameters in enumerate(samples, 1):
            runs[evaluation, name] = dask.delayed(run)(tile, options, parameters, truth, normalized)
    return dask.compute(runs, scheduler="processes", pool=pool)[0]


def indices(
    study: studies.Study, samples: list[dict[str, float]], responses: list[float]
) -> dict[str, np.ndarray] | None:
    """Morris indices of the whole trajectories; none where there are no two, or the parameter sets are none."""
    problem = study.problem
    names, length = problem["names"], problem["num_vars"] + 1
    whole = len(samples) // length * length
    if whole < 2 * length:  # the spread of one trajectory says nothing
        return None
    x = np.array([[sample[name] for name in names] for sample in samples[:whole]])
    moves = np.diff(x.reshape(-1, length, len(names)), axis=1) != 0
    if not ((moves.sum(axis=1) == 1).all() and (moves.sum(axis=2) == 1).all()):
        return None
    y = np.array(responses[:whole], dtype=float)
    return SALib.analyze.morris.analyze(problem, x, y, num_levels=study.levels, seed=study.seed)


def shown(number: float) -> str:
    """The shortest form that reads back, as pleach writes it."""
    return repr(float(number)).removesuffix(".0")


def write(file: Path, header: list[str], rows: list[list[str]]) -> None:
    """Writes a CSV file."""
    with file.open("w", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerows([header, *rows])


def main() -> int:
    """Runs the study and writes its results."""
    start = time.perf_counter()
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("study", type=Path)
    arguments.add_argument("--workers", type=int, required=True, help="processes of one thread each")
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--parameter-sets", type=Path, help="parameter sets, such as pleach's samples.csv")
    arguments.add_argument("--evaluations", type=int, help="only the first K parameter sets")
    arguments.add_argument("--reconstruction", choices=list(nuclei.RECONSTRUCTIONS), default="scikit-image")
    arguments.add_argument("--cache-normalized", action="store_true", help="normalize each tile once, not in every run")
    given = arguments.parse_args()

    study = studies.read(given.study)
    table = given.table or study.table
    samples = (study.read_table(table) if table else study.sample())[: given.evaluations]
    options = Options(study.normalize, given.reconstruction)
    given.out.mkdir(parents=True, exist_ok=True)

    os.environ.update(KEEP_MEMORY)
    context = multiprocessing.get_context("spawn")
    started = context.Barrier(given.workers + 1, timeout=START_SECONDS)
    with ProcessPoolExecutor(given.workers, mp_context=context, initializer=started.wait) as pool:
        for _ in range(given.workers):
            pool.submit(os.getpid)  # a worker starts when there is something to do
        started.wait()
        ready = time.perf_counter()
        runs = execute(pool, study, samples, options, given.cache_normalized)
        # Summed over the tiles: a mean, but for pixels, which are counted.
        share = 1 if study.metric == "pixel-difference" else 1 / len(study.tiles)
        responses = [0.0] * len(samples)
        for (evaluation, _), one in runs.items():
            responses[evaluation - 1] += share * one.response[study.metric]
        found = indices(study, samples, responses)
        done = time.perf_counter()

    rows = [[str(e), tile, *(shown(runs[e, tile].response[m]) for m in study.metrics)] for e, tile in sorted(runs)]
    write(given.out / "responses.csv", ["evaluation", "tile", *study.metrics], rows)
    if found is not None:
        columns = ["mu", "mu_star", "mu_star_conf", "sigma"]
        rows = [[name, *(shown(found[c][i]) for c in columns)] for i, name in enumerate(found["names"])]
        write(given.out / "indices.csv", ["parameter", *columns], rows)

    seconds: Counter[str] = Counter()
    for one in runs.values():
        seconds.update(one.seconds)
    record = {
        "workers": given.workers,
        "runs": len(runs),
        "wall_seconds": time.perf_counter() - start,
        "study_seconds": done - ready,
        "seconds_a_run": {name: total / len(runs) for name, total in seconds.items()},
    }
    (given.out / "run.json").write_text(json.dumps(record, indent=2) + "\n")
    report(record)
    return 0


def report(record: dict) -> None:
    """Says what it took."""
    runs, workers = record["runs"], record["workers"]
    print(f"{runs} runs with {workers} workers in {record['study_seconds']:.2f} s", end=" ")
    print(f"({record['wall_seconds']:.2f} s with the start and end of the workers)")
    parts = record["seconds_a_run"]
    own = 1e3 * sum(parts.values())
    print(f"{own:.1f} ms a run; {1e3 * record['study_seconds'] * workers / runs - own:.1f} ms more until the next")
    for name, part in parts.items():
        print(f"  {name:<18} {1e3 * part:7.1f} ms {100 * 1e3 * part / own:5.1f} %")


if __name__ == "__main__":
    sys.exit(main())
