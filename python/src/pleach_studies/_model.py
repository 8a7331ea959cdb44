"""Samples and indices for a model of your own."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ._indices import Floats, Indices
from ._problem import Problem, problem_of
from ._program import call

Method = Literal["moat", "vbd", "correlation", "regression", "pawn", "delta", "fast", "rbd-fast"]
Sampler = Literal[
    "mc", "lhs", "lhs-centered", "lhs-maximin", "halton", "halton-plain", "hammersley", "hammersley-plain", "sobol",
    "factorial", "fractional-factorial", "morris", "saltelli",
]  # fmt: skip
Map = Callable[[Callable[[Floats], float], Iterable[Floats]], Iterable[float]]


def sample(
    problem: Problem | Mapping[str, Any],
    *,
    method: Method,
    samples: int | None = None,
    trajectories: int | None = None,
    levels: int | None = None,
    candidates: int | None = None,
    second_order: bool = False,
    sampler: Sampler | None = None,
    harmonics: int | None = None,
    seed: int = 0,
) -> Floats:
    """Draws parameter sets. Returns an array of shape (evaluations, parameters), one row per evaluation.

    ``problem`` is a :class:`Problem` or SALib's dict. Columns are in its order. The same arguments give the same
    numbers.

    ``samples`` is the number of evaluations, of ``vbd`` that of base samples, of ``fast`` that of points per parameter.
    ``trajectories``, ``levels`` and ``candidates`` are settings of ``moat``. ``second_order`` adds the rows for
    second-order indices (``vbd``). Omitted settings have pleach's defaults.

    Raises :class:`ValueError` for a wrong problem and :class:`PleachError` for settings that pleach refuses.
    """
    problem = problem_of(problem)
    with _folder() as folder:
        out = folder / "samples.csv"
        settings = _options(
            samples=samples, trajectories=trajectories, levels=levels, candidates=candidates,
            second_order=second_order, sampler=sampler, harmonics=harmonics, seed=seed,
        )  # fmt: skip
        call(["sample", problem.write(folder), "--method", method, "--out", out, *settings], folder)
        table = np.loadtxt(out, delimiter=",", skiprows=1, ndmin=2, encoding="utf-8", comments=None)
    # pleach numbers the rows in a column `evaluation`, unless a parameter has this name.
    return np.ascontiguousarray(table if "evaluation" in problem.names else table[:, 1:])


def analyze(
    problem: Problem | Mapping[str, Any],
    X: ArrayLike,
    Y: ArrayLike,
    *,
    method: Method,
    levels: int | None = None,
    second_order: bool = False,
    estimator: Literal["saltelli", "jansen", "janon"] | None = None,
    harmonics: int | None = None,
    slices: int | None = None,
    resamples: int | None = None,
    seed: int = 0,
    response: str = "y",
) -> Indices:
    """Computes the sensitivity indices of the responses ``Y`` to the parameter sets ``X``.

    ``X`` has the shape (evaluations, parameters) and its columns are in the order of ``problem``. ``Y`` has the shape
    (evaluations,). A response of ``nan`` is a failed evaluation. For ``moat``, ``vbd`` and ``fast``, ``X`` is the
    complete sample of :func:`sample`, in its order. Samples of SALib serve too. ``levels`` (``moat``) must be that of
    the sample. Rows for second-order indices (``vbd``) are detected; ``second_order`` makes their absence an error.

    pleach reads the numbers without rounding. Intervals are from ``resamples`` bootstrap resamples with ``seed``.

    Raises :class:`ValueError` for a wrong problem or wrong shapes and :class:`PleachError` for a sample or settings
    that pleach refuses.
    """
    problem = problem_of(problem)
    rows = np.asarray(X, dtype=np.float64)
    responses = np.asarray(Y, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(problem):
        raise ValueError(f"X has shape {rows.shape}; (evaluations, {len(problem)}) is needed, one column per parameter")
    if responses.shape != (len(rows),):
        raise ValueError(f"Y has shape {responses.shape}; ({len(rows)},) is needed, one response per row of X")
    if response in (*problem.names, "evaluation", "tile", "interface", "%eval_id"):
        raise ValueError(f"response {response!r}: the name is taken; choose another name")
    with _folder() as folder:
        table = folder / "samples.csv"
        with table.open("w", encoding="utf-8", newline="") as file:
            # csv writes floats with `repr`: the shortest text that reads back as the same number.
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*problem.names, response])
            for row, value in zip(rows.tolist(), responses.tolist(), strict=True):
                writer.writerow([*row, "" if value != value else value])
        settings = _options(
            levels=levels, second_order=second_order, estimator=estimator, harmonics=harmonics, slices=slices,
            resamples=resamples, seed=seed,
        )  # fmt: skip
        files: list[str | Path] = ["--samples", table, "--responses", table, "--response", response]
        output = call(["analyze", problem.write(folder), "--method", method, *files, *settings, "--json"], folder)
    document = json.loads(output)
    [found] = document["responses"]
    warnings = (*document["sample_warnings"], *found["warnings"])
    return Indices(found["indices"], warnings, rows, responses)


def evaluate(
    problem: Problem | Mapping[str, Any],
    function: Callable[[Floats], float],
    *,
    method: Method,
    samples: int | None = None,
    trajectories: int | None = None,
    levels: int | None = None,
    candidates: int | None = None,
    second_order: bool = False,
    sampler: Sampler | None = None,
    estimator: Literal["saltelli", "jansen", "janon"] | None = None,
    harmonics: int | None = None,
    slices: int | None = None,
    resamples: int | None = None,
    seed: int = 0,
    response: str = "y",
    map: Map = map,
) -> Indices:
    """Draws parameter sets, calls ``function`` on each, and computes the sensitivity indices.

    ``function`` takes one parameter set, an array of shape (parameters,), and returns a number, or ``nan`` if the
    evaluation failed. An exception of the function ends the call. ``map`` calls it on all parameter sets and keeps
    their order, such as ``map`` of a ``concurrent.futures`` executor.

    The settings are those of :func:`sample` and :func:`analyze`. The result holds the sample as ``X`` and the responses
    as ``Y``.
    """
    problem = problem_of(problem)
    X = sample(
        problem, method=method, samples=samples, trajectories=trajectories, levels=levels, candidates=candidates,
        second_order=second_order, sampler=sampler, harmonics=harmonics, seed=seed,
    )  # fmt: skip
    Y = np.array([float(value) for value in map(function, list(X))], dtype=np.float64)
    return analyze(
        problem, X, Y, method=method, levels=levels, second_order=second_order, estimator=estimator,
        harmonics=harmonics, slices=slices, resamples=resamples, seed=seed, response=response,
    )  # fmt: skip


@contextmanager
def _folder() -> Generator[Path, None, None]:
    with tempfile.TemporaryDirectory(prefix="pleach-studies-") as folder:
        yield Path(folder)


def _options(**settings: object) -> list[str]:
    options: list[str] = []
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            options.append(option)
        elif value is not None and value is not False:
            options.append(f"{option}={value}")
    return options
