"""Results of a study: the folder that ``pleach run`` and ``pleach results`` write."""

from __future__ import annotations

import csv
import html
import importlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ._indices import Floats, Indices

#: Metrics of the workflow `nuclei` that are sums over tiles. All others are means.
_SUMS = ("nuclei", "pixel-difference")


class Results:
    """The results in a folder. Files are read when they are first needed.

    A study in phases has one set of results per phase in :attr:`phases`. Only :attr:`run` and :attr:`report` are for
    all phases; the other properties raise :class:`ValueError`.

    Raises :class:`FileNotFoundError` if the folder has no ``run.json``.
    """

    def __init__(self, folder: str | Path) -> None:
        #: The folder.
        self.folder = Path(folder)
        if not (self.folder / "run.json").is_file():
            raise FileNotFoundError(f"{self.folder}: no run.json; the folder of a complete study is needed")

    @cached_property
    def run(self) -> dict[str, Any]:
        """How the study ran: the content of ``run.json``."""
        document: dict[str, Any] = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        return document

    @property
    def report(self) -> Path:
        """Path of the report, a page without external files."""
        return self.folder / "report.html"

    @cached_property
    def phases(self) -> tuple[Results, ...]:
        """Results of each phase, in order. Empty for a study of one phase."""
        return tuple(Results(self.folder / phase["folder"]) for phase in self.run.get("phases") or ())

    @cached_property
    def samples(self) -> NDArray[np.void]:
        """Parameter sets: a structured array with the fields ``evaluation`` and one per parameter."""
        return _table(self._file("samples.csv"), ("evaluation",))

    @cached_property
    def responses(self) -> NDArray[np.void]:
        """Responses: a structured array with the fields ``evaluation``, ``tile`` and one per metric.

        It has one row per successful run. ``pandas.DataFrame(results.responses)`` is its data frame.
        """
        return _table(self._file("responses.csv"), ("evaluation",), ("tile",))

    @cached_property
    def failed(self) -> NDArray[np.void]:
        """Failed runs: a structured array with ``evaluation``, ``tile``, ``stage``, ``task``, ``cause``, parameters."""
        return _table(self._file("failed.csv"), ("evaluation",), ("tile", "stage", "task", "cause"))

    @cached_property
    def indices(self) -> dict[str, Indices]:
        """Indices of each analyzed response. Empty if the study has none (method ``table``)."""
        file = self._file("indices.json", needed=False)
        if not file.is_file():
            return {}
        document = json.loads(file.read_text(encoding="utf-8"))
        if "method" not in document:
            return {}
        each = [Indices(raw) for raw in (document, *document.get("additional_responses", ()))]
        return {indices.response: indices for indices in each}

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Names of all metrics in :attr:`responses`, analyzed or not."""
        return tuple(name for name in self.responses.dtype.names or () if name not in ("evaluation", "tile"))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the varied parameters: the columns of :attr:`X`."""
        for indices in self.indices.values():
            return indices.names
        columns = [name for name in self.samples.dtype.names or () if name != "evaluation"]
        return tuple(name for name in columns if np.ptp(self.samples[name]) > 0)

    @cached_property
    def X(self) -> Floats:
        """Sample, shape (evaluations, varied parameters), in the order of the evaluations."""
        found: Floats = np.empty((len(self.samples), len(self.names)), dtype=np.float64)
        for place, name in enumerate(self.names):
            found[:, place] = self.samples[name]
        return found

    def Y(self, metric: str, tiles: Literal["mean", "sum"] | None = None) -> Floats:
        """Returns a metric of each evaluation, shape (evaluations,), in the order of :attr:`X`.

        ``tiles`` combines the tiles, ``"mean"`` with the weights of the study. By default it is the rule of the study,
        checked against ``run.json``. For metrics
        that the study did not analyze it is the mean, and the sum for ``nuclei`` and ``pixel-difference``. An
        evaluation without a response on one of the tiles is ``nan``. A tile on which all runs failed does not count.

        Raises :class:`KeyError` for an unknown metric, and :class:`ValueError` without ``tiles`` if the rule cannot be
        applied to the recorded responses: the study leaves out runs with two empty masks.
        """
        if metric not in self.metrics:
            raise KeyError(f"{metric}: no metric of these results; known are {', '.join(self.metrics)}")
        grid = self._grid(metric)
        if not grid.shape[1]:
            return np.full(len(grid), np.nan)
        found: dict[str, Floats] = {"sum": grid.sum(axis=1), "mean": self._mean(grid)}
        return found[tiles or self._rule(metric, found, self._rows)]

    @cached_property
    def _rows(self) -> dict[int, int]:
        return {int(number): row for row, number in enumerate(self.samples["evaluation"])}

    def _grid(self, metric: str) -> Floats:
        """Returns a metric, shape (evaluations, tiles). Tiles are in the order of their names."""
        names, columns = np.unique(self.responses["tile"], return_inverse=True)
        rows = np.array([self._rows.get(int(number), -1) for number in self.responses["evaluation"]], dtype=np.int64)
        # Evaluation 0, the defaults beside the sample, is not in it.
        known = rows >= 0
        grid: Floats = np.full((len(self._rows), len(names)), np.nan)
        grid[rows[known], columns[known]] = self.responses[metric][known]
        return grid

    def _mean(self, grid: Floats) -> Floats:
        """Returns the mean over tiles, with the weights of the study. Tiles are in the order of their names."""
        record = self.run.get("weights")
        if record is None:
            return np.asarray(grid.mean(axis=1), dtype=np.float64)
        of_tile = dict(zip(self.run["tiles"], record["pixels"], strict=True))
        weights = np.array([of_tile[name] for name in np.unique(self.responses["tile"])], dtype=np.float64)
        if not weights.any():
            weights[:] = 1.0
        return np.asarray(grid @ weights / weights.sum(), dtype=np.float64)

    def _rule(self, metric: str, found: dict[str, Floats], place: dict[int, int]) -> str:
        if any(entry["response"] == metric and entry["left_out"] for entry in self.run.get("both_empty") or ()):
            raise ValueError(f"{metric}: the study leaves out runs with two empty masks; set tiles to include them")
        known: list[tuple[int, float]] = [
            (place[entry["evaluation"]], entry["value"])
            for extreme in self.run.get("extremes") or ()
            for entry in extreme["evaluations"]
            if extreme["response"] == metric and entry["evaluation"] in place and entry["value"] is not None
        ]
        rules = ("sum", "mean") if metric in _SUMS else ("mean", "sum")
        for rule in rules:
            if all(abs(float(found[rule][at]) - value) <= 1e-12 + 1e-9 * abs(value) for at, value in known):
                return rule
        raise ValueError(f"{metric}: run.json has other values than responses.csv; set tiles")

    def problem(self) -> dict[str, Any]:
        """Returns SALib's problem of the varied parameters, for SALib's ``analyze`` functions.

        A results folder holds no ranges: the bounds are the smallest and largest values of the sample.
        """
        bounds = [[float(column.min()), float(column.max())] for column in self.X.T]
        return {"num_vars": len(self.names), "names": list(self.names), "bounds": bounds}

    def to_pandas(self) -> Any:
        """Returns a ``pandas.DataFrame`` with one row per successful run: evaluation, tile, parameters, metrics.

        Raises :class:`ImportError` without pandas.
        """
        pandas: Any = importlib.import_module("pandas")

        responses, samples = pandas.DataFrame(self.responses), pandas.DataFrame(self.samples)
        joined = responses[["evaluation", "tile"]].merge(samples, on="evaluation", how="left")
        return pandas.concat([joined, responses[list(self.metrics)]], axis=1)

    def to_polars(self) -> Any:
        """Returns a ``polars.DataFrame`` with the rows and columns of :meth:`to_pandas`.

        Raises :class:`ImportError` without polars.
        """
        polars: Any = importlib.import_module("polars")

        rows = [self._rows.get(int(number), -1) for number in self.responses["evaluation"]]
        columns = {name: self.responses[name].copy() for name in ("evaluation", "tile")}
        for name in self.samples.dtype.names or ():
            if name != "evaluation":
                # Evaluation 0, the defaults beside the sample, has no row: -1 is the added one.
                columns[name] = np.append(self.samples[name], np.nan)[rows]
        columns.update((name, self.responses[name].copy()) for name in self.metrics)
        return polars.DataFrame(columns)

    def to_xarray(self) -> Any:
        """Returns an ``xarray.Dataset`` with the dimensions ``evaluation`` and ``tile``.

        Its variables are the metrics, ``nan`` where a run failed. The parameters are coordinates along ``evaluation``.
        Raises :class:`ImportError` without xarray.
        """
        xarray: Any = importlib.import_module("xarray")

        variables = {metric: (("evaluation", "tile"), self._grid(metric)) for metric in self.metrics}
        names = [name for name in self.samples.dtype.names or () if name != "evaluation"]
        parameters = {name: ("evaluation", self.samples[name]) for name in names}
        axes = {"evaluation": self.samples["evaluation"], "tile": np.unique(self.responses["tile"])}
        return xarray.Dataset(variables, coords={**axes, **parameters})

    def _file(self, name: str, needed: bool = True) -> Path:
        if self.phases:
            raise ValueError(f"{self.folder}: a study in phases; {name} is in each of `phases`")
        file = self.folder / name
        if needed and not file.is_file():
            raise FileNotFoundError(f"{file}: missing")
        return file

    def __repr__(self) -> str:
        return f"Results({str(self.folder)!r})"

    def _repr_html_(self) -> str:
        """Returns the report in a sandboxed frame, for notebooks."""
        if not self.report.is_file():
            return f"<code>{html.escape(repr(self))}</code>"
        page = html.escape(self.report.read_text(encoding="utf-8"), quote=True)
        style = "width: 100%; height: 40em; border: 1px solid #ccc; background: #fff"
        return f'<iframe sandbox="" srcdoc="{page}" style="{style}" title="pleach report"></iframe>'


def _table(file: Path, integers: tuple[str, ...], texts: tuple[str, ...] = ()) -> NDArray[np.void]:
    """Reads a CSV file. Columns are integers, texts, or numbers; an empty number is ``nan``."""
    with file.open(encoding="utf-8", newline="") as opened:
        header, *rows = [row for row in csv.reader(opened) if row]
    fields: list[tuple[str, Any]] = []
    columns: list[list[Any]] = []
    for place, name in enumerate(header):
        column = [row[place] for row in rows]
        if name in integers:
            fields.append((name, np.int64))
            columns.append([int(text) for text in column])
        elif name in texts:
            fields.append((name, f"U{max(map(len, column), default=1) or 1}"))
            columns.append(column)
        else:
            fields.append((name, np.float64))
            columns.append([float(text) if text else np.nan for text in column])
    return np.array(list(zip(*columns, strict=True)), dtype=fields)
