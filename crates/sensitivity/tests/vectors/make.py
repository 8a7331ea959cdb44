#!/usr/bin/env python3
"""Writes what SALib and scipy find on five test functions into the JSON files beside this script.

    tests/vectors/make.py        # with SALib 1.6.0, numpy and scipy installed

Each file names the versions that it comes from. Samples are small, and their numbers short, so that files are: what is
compared are statistics of the same samples, not how good these are. Half-widths of intervals are of 2000 resamples (of
delta, 300), and so known to about 2 % (4 %).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.stats
from SALib.analyze import delta, fast, morris, pawn, rbd_fast, sobol
from SALib.sample import fast_sampler, latin
from SALib.sample import morris as morris_sampler
from SALib.sample import sobol as sobol_sampler
from SALib.test_functions import Ishigami, Sobol_G

RESAMPLES = 2000


def morris_function(x: np.ndarray) -> np.ndarray:
    """Morris (1991), equation 10: 20 inputs in the unit cube; coefficients that he draws at random are fixed ones here."""
    w = 2 * (x - 0.5)
    for i in (2, 4, 6):
        w[:, i] = 2 * (1.1 * x[:, i] / (x[:, i] + 0.1) - 0.5)
    place = np.arange(20)
    first = np.where(place < 10, 20.0, (-1.0) ** (place + 1))
    y = w @ first
    for i in range(20):
        for j in range(i + 1, 20):
            y += (-15.0 if j < 6 else (-1.0) ** (i + j)) * w[:, i] * w[:, j]
            for k in range(j + 1, 5):
                y += -10.0 * w[:, i] * w[:, j] * w[:, k]
    return y + 5.0 * w[:, 0] * w[:, 1] * w[:, 2] * w[:, 3]


def linkletter(x: np.ndarray) -> np.ndarray:
    """Linkletter et al. (2006), decreasing coefficients: eight of ten inputs matter, each half as much as the one before."""
    return x[:, :8] @ (0.2 / 2.0 ** np.arange(8))


def linear(x: np.ndarray) -> np.ndarray:
    """A plane, and a constant that is large beside it."""
    return 1000.0 + x @ np.array([4.0, -2.0, 1.0, 0.5])


FUNCTIONS: dict[str, tuple[int, tuple[float, float], Callable[[np.ndarray], np.ndarray]]] = {
    "ishigami": (3, (-np.pi, np.pi), Ishigami.evaluate),
    "sobol_g": (8, (0.0, 1.0), Sobol_G.evaluate),
    "morris": (20, (0.0, 1.0), morris_function),
    "linkletter": (10, (0.0, 1.0), linkletter),
    "linear": (4, (0.0, 1.0), linear),
}
# Base samples of VBD, rows of given data, trajectories.
SIZES = {"ishigami": (64, 300, 20), "sobol_g": (32, 200, 10), "morris": (16, 128, 8), "linkletter": (16, 150, 10), "linear": (32, 100, 10)}


def vbd(problem: dict, samples: int, function: Callable) -> dict:
    """Saltelli's design with second order, analyzed with and without it."""
    x = sobol_sampler.sample(problem, samples, calc_second_order=True, seed=1)
    y = function(x)
    length = 2 * problem["num_vars"] + 2
    plain = y.reshape(-1, length)[:, [*range(problem["num_vars"] + 1), -1]].ravel()
    found = sobol.analyze(problem, y, calc_second_order=True, num_resamples=RESAMPLES, seed=1)
    first = sobol.analyze(problem, plain, calc_second_order=False, num_resamples=RESAMPLES, seed=1)
    pairs = np.triu_indices(problem["num_vars"], 1)
    return {
        "samples": samples,
        "y": y,
        "S1": found["S1"],
        "S1_conf": found["S1_conf"],
        "ST": found["ST"],
        "ST_conf": found["ST_conf"],
        "S2": found["S2"][pairs],
        "S2_conf": found["S2_conf"][pairs],
        "S1_plain": first["S1"],
        "ST_plain": first["ST"],
    }


def partial(x: np.ndarray, y: np.ndarray) -> list[float]:
    """Correlation of what the other columns leave of each column and of y."""
    coefficients = []
    for i in range(x.shape[1]):
        others = np.column_stack([np.ones(len(y)), np.delete(x, i, axis=1)])

        def rest(of: np.ndarray, others: np.ndarray = others) -> np.ndarray:
            return of - others @ np.linalg.lstsq(others, of, rcond=None)[0]

        coefficients.append(scipy.stats.pearsonr(rest(x[:, i]), rest(y)).statistic)
    return coefficients


def regression(x: np.ndarray, y: np.ndarray) -> dict:
    """Coefficients and R² of the linear model in units of deviations."""
    x, y = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()
    coefficients = np.linalg.lstsq(x, y, rcond=None)[0]
    return {"coefficients": coefficients, "r_squared": 1 - np.mean((y - x @ coefficients) ** 2)}


def delta_of(x: np.ndarray, y: np.ndarray, resamples: int) -> dict:
    """SALib's estimator on the sample itself, which `delta.analyze` itself applies to resamples only."""
    exponent = 2.0 / (7.0 + np.tanh((1500.0 - y.size) / 500.0))
    classes = int(np.round(min(int(np.ceil(y.size**exponent)), 48)))
    edges = np.linspace(0, y.size, classes + 1)
    grid = np.linspace(np.min(y), np.max(y), 100)
    rng = np.random.default_rng(1)
    plain = [delta.calc_delta(y, grid, column, edges) for column in x.T]
    found = {"classes": classes, "plain": plain, "S1": [delta.sobol_first(y, column, edges) for column in x.T]}
    if resamples:
        drawn = [rng.integers(y.size, size=y.size) for _ in range(resamples)]
        reduced = [
            [2 * plain[i] - delta.calc_delta(y[rows], grid, x[rows, i], edges) for rows in drawn] for i in range(x.shape[1])
        ]
        first = [[delta.sobol_first(y[rows], x[rows, i], edges) for rows in drawn] for i in range(x.shape[1])]
        z = scipy.stats.norm.ppf(0.975)
        found |= {
            "delta": np.mean(reduced, axis=1),
            "delta_conf": z * np.std(reduced, axis=1, ddof=1),
            "S1_conf": z * np.std(first, axis=1, ddof=1),
        }
    return found


def given(problem: dict, x: np.ndarray, y: np.ndarray, levels: bool, resamples: int) -> dict:
    """Methods that need no structure."""
    ranks = np.apply_along_axis(scipy.stats.rankdata, 0, x)
    y_ranks = scipy.stats.rankdata(y)
    found = {
        "x": x.T,
        "y": y,
        "pearson": [scipy.stats.pearsonr(column, y).statistic for column in x.T],
        "spearman": [scipy.stats.spearmanr(column, y).statistic for column in x.T],
        "src": regression(x, y),
        "srrc": regression(ranks, y_ranks),
        "prcc": partial(ranks, y_ranks),
        "delta": delta_of(x, y, resamples),
    }
    # A plane leaves nothing: partial correlations are ±1, or not defined.
    if found["src"]["r_squared"] < 1 - 1e-9:
        found["pcc"] = partial(x, y)
    # Where values are equal, SALib's PAWN leaves levels out and its RBD-FAST sorts them anyhow.
    if not levels:
        found["pawn"] = {key: value for key, value in pawn.analyze(problem, x, y, S=10).items() if key != "names"}
        fast_found = rbd_fast.analyze(problem, x, y, num_resamples=RESAMPLES, seed=1)
        found["rbd_fast"] = {"S1": fast_found["S1"], "S1_conf": fast_found["S1_conf"]}
    return found


def trajectories(problem: dict, count: int, function: Callable) -> dict:
    """Morris' method; values are stored as places on the grid of four levels."""
    x = morris_sampler.sample(problem, count, num_levels=4, seed=1)
    low, high = problem["bounds"][0]
    y = function(x.copy())
    found = morris.analyze(problem, x, y, num_levels=4, num_resamples=RESAMPLES, seed=1)
    return {
        "levels": np.rint((x - low) / (high - low) * 3).astype(int),
        "y": y,
        "mu": found["mu"],
        "mu_star": found["mu_star"],
        "sigma": found["sigma"],
        "mu_star_conf": found["mu_star_conf"],
    }


def curves(problem: dict, function: Callable) -> dict:
    """eFAST on the shortest curves, with an even and an odd number of evaluations."""
    found = {}
    for name, samples in (("odd", 65), ("even", 66)):
        y = function(fast_sampler.sample(problem, samples, seed=1))
        result = fast.analyze(problem, y, num_resamples=RESAMPLES, seed=1)
        found[name] = {"samples": samples, "y": y, "S1": result["S1"], "ST": result["ST"]}
        found[name] |= {"S1_conf": result["S1_conf"], "ST_conf": result["ST_conf"]}
    return found


def plain(value: object) -> object:
    """Arrays as lists."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | list):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def main() -> None:
    """Writes one file a function."""
    warnings.simplefilter("ignore")
    versions = {name: version(name) for name in ("SALib", "numpy", "scipy")}
    for name, (width, bounds, function) in FUNCTIONS.items():
        problem = {"num_vars": width, "names": [f"x{i + 1}" for i in range(width)], "bounds": [list(bounds)] * width}
        samples, rows, count = SIZES[name]
        x = np.round(latin.sample(problem, rows, seed=1), 6)
        found = {
            "versions": versions,
            "names": problem["names"],
            "bounds": bounds,
            "vbd": vbd(problem, samples, function),
            "given": given(problem, x, function(x.copy()), False, 300 if name == "ishigami" else 0),
            "moat": trajectories(problem, count, function),
        }
        found["fast"] = curves(problem, function)
        if name == "linear":
            # Four levels of each input, and noise that no input explains.
            x = np.floor(x * 4) / 4
            y = np.round(linear(x) + np.random.default_rng(1).normal(size=len(x)), 6)
            found["levels"] = given(problem, x, y, True, 0)
        path = Path(__file__).with_name(f"{name}.json")
        path.write_text(json.dumps(plain(found)).replace(", ", ",").replace(": ", ":") + "\n")
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
