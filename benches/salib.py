#!/usr/bin/env python3
"""Times samplers and methods beside SALib's, and prints how many times as long SALib takes.

    cargo build --release -p pleach-sensitivity --examples
    benches/salib.py [--examples target/release/examples] [--calls 10] [--only vbd lhs]

Both sides compute the same from the same sizes: Sobol's G function, as many resamples. SALib runs in this one process,
its imports and a first call not counted; ours in a process that times its own calls, the first one not counted. Calls
are made in two halves and in turns; what is printed is the mean of the two medians. Fails when a ratio is below what is
promised.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
from SALib.analyze import delta, fast, morris, pawn, rbd_fast, sobol
from SALib.sample import fast_sampler, latin
from SALib.sample import morris as morris_sampler
from SALib.sample import sobol as sobol_sampler
from SALib.test_functions import Sobol_G

# SALib's G function has eight parameters unless it is told.
G = np.array([0, 1, 4.5, 9] + [99] * 11, dtype=float)


def problem(width: int) -> dict:
    """Parameters of the unit interval."""
    return {"num_vars": width, "names": [f"x{i}" for i in range(width)], "bounds": [[0.0, 1.0]] * width}


def responses(x: np.ndarray) -> np.ndarray:
    """Sobol's G function."""
    return Sobol_G.evaluate(x, a=G[: x.shape[1]])


def vbd(size: int, width: int, second: bool) -> Callable:
    """Sobol' indices with 100 resamples."""
    of = problem(width)
    y = responses(sobol_sampler.sample(of, size, calc_second_order=second, seed=1))
    return lambda: sobol.analyze(of, y, calc_second_order=second, num_resamples=100, seed=1)


def moat(size: int, width: int) -> Callable:
    """Elementary effects; 1000 resamples, as ours."""
    of = problem(width)
    x = morris_sampler.sample(of, size, num_levels=4, seed=1)
    y = responses(x)
    return lambda: morris.analyze(of, x, y, num_levels=4, num_resamples=1000, seed=1)


def efast(size: int, width: int) -> Callable:
    """Curves of this many evaluations."""
    of = problem(width)
    y = responses(fast_sampler.sample(of, size, seed=1))
    return lambda: fast.analyze(of, y, num_resamples=100, seed=1)


def given(analyze: Callable, size: int, width: int) -> Callable:
    """A method of random points."""
    of = problem(width)
    x = np.random.default_rng(1).random((size, width))
    y = responses(x)
    return lambda: analyze(of, x, y)


def delta_raw(of: dict, x: np.ndarray, y: np.ndarray) -> None:
    """The one of SALib's three kinds of resampling that ours does, without the work for the others."""
    exponent = 2.0 / (7.0 + np.tanh((1500.0 - y.size) / 500.0))
    edges = np.linspace(0, y.size, int(np.round(min(int(np.ceil(y.size**exponent)), 48))) + 1)
    grid = np.linspace(np.min(y), np.max(y), 100)
    for column in x.T:
        delta.bias_reduced_delta(y, grid, column, edges, 100, 0.95, y.size, "raw", None, "x", 10)
        delta.sobol_first(y, column, edges)
        delta.sobol_first_conf(y, column, edges, 100, 0.95, y.size)


def rbd(of: dict, x: np.ndarray, y: np.ndarray) -> None:
    """RBD-FAST with 100 resamples."""
    rbd_fast.analyze(of, x, y, num_resamples=100, seed=1)


# What ours is called, sizes, SALib's call, and the ratio that is promised, if any.
CASES: list[tuple[str, str, int, int, Callable, float | None]] = [
    ("analysis", "vbd", 8192, 8, lambda n, d: vbd(n, d, False), 10),
    ("analysis", "vbd-second", 8192, 8, lambda n, d: vbd(n, d, True), 10),
    ("analysis", "moat", 1000, 15, moat, None),
    ("analysis", "pawn", 8192, 8, lambda n, d: given(pawn.analyze, n, d), None),
    ("analysis", "delta", 200, 3, lambda n, d: given(delta_raw, n, d), None),
    ("analysis", "efast", 1024, 8, efast, None),
    ("analysis", "rbd-fast", 1024, 8, lambda n, d: given(rbd, n, d), None),
    ("sampling", "lhs", 100_000, 15, lambda n, d: lambda: latin.sample(problem(d), n, seed=1), 10),
    ("sampling", "morris", 1000, 15, lambda n, d: lambda: morris_sampler.sample(problem(d), n, num_levels=20, seed=1), 3),
    (
        "sampling",
        "saltelli",
        65_536,
        8,
        lambda n, d: lambda: sobol_sampler.sample(problem(d), n, calc_second_order=False, seed=1),
        3,
    ),
    (
        "sampling",
        "saltelli2",
        65_536,
        8,
        lambda n, d: lambda: sobol_sampler.sample(problem(d), n, calc_second_order=True, seed=1),
        3,
    ),
]


def ours(example: Path, name: str, size: int, width: int, calls: int) -> float:
    """Median seconds of our example."""
    command = [str(example), name, str(size), str(width), str(calls)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def theirs(call: Callable, calls: int) -> float:
    """Median seconds of SALib's call, after a first one that is not counted."""
    seconds = []
    for number in range(calls + 1):
        start = time.perf_counter()
        call()
        if number > 0:
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> int:
    """Times all cases and compares."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--examples", type=Path, default=Path("target/release/examples"))
    arguments.add_argument("--calls", type=int, default=10)
    arguments.add_argument("--only", nargs="*", help="names of cases")
    options = arguments.parse_args()
    warnings.simplefilter("ignore")

    print(f"SALib {version('SALib')}, numpy {np.__version__}; medians of {options.calls} calls\n")
    print("| what | size | parameters | pleach, ms | SALib, ms | ratio | promised |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    short = False
    for example, name, size, width, make, promised in CASES:
        if options.only and name not in options.only:
            continue
        binary = options.examples / example
        if not binary.exists():
            sys.exit(f"{binary} is not there; build it: cargo build --release -p pleach-sensitivity --examples")
        call = make(size, width)
        # In two halves and in turns, so that what else the machine does meets both sides.
        halves = [(options.calls + 1) // 2, options.calls // 2]
        pairs = [(ours(binary, name, size, width, calls), theirs(call, calls)) for calls in halves if calls]
        mine, other = (statistics.mean(column) for column in zip(*pairs, strict=True))
        ratio = other / mine
        short |= promised is not None and ratio < promised
        wanted = "" if promised is None else f"{promised}"
        print(f"| {name} | {size} | {width} | {1000 * mine:.2f} | {1000 * other:.1f} | {ratio:.1f} | {wanted} |", flush=True)
    return int(short)


if __name__ == "__main__":
    sys.exit(main())
