"""Sensitivity indices of one response."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: SALib's names of pleach's estimates.
_SALIB = {
    "vbd": {"first": "S1", "total": "ST"},
    "efast": {"first": "S1", "total": "ST"},
    "rbd-fast": {"coefficient": "S1"},
    "delta": {"first": "S1", "plain": "delta_plain"},
    "pawn": {"cv": "CV", "deviation": "stdev"},
}


class Indices(Mapping[str, Floats]):
    """Sensitivity indices of one response: arrays by name, as in SALib's results.

    Each array has one number per entry of ``names``. ``S2`` and ``S2_conf`` are square, filled above the diagonal
    and ``nan`` elsewhere. Names ending in ``_conf`` are half-widths of 95 % intervals. Where pleach gives the
    interval itself, ``_low`` and ``_high`` are its bounds. Undefined numbers are ``nan``.

    =================  ==========================================================================================
    method             names
    =================  ==========================================================================================
    moat               mu, mu_star, sigma, mu_star_conf, mu_conf, sigma_conf, effect (mu divided by the range of Y)
    vbd, fast          S1, ST; with second order S2
    rbd-fast           S1
    delta              delta, delta_plain (without bias reduction), S1
    pawn               minimum, mean, median, maximum, CV, stdev
    correlation        pearson, spearman, pcc, prcc
    regression         src, srrc
    =================  ==========================================================================================
    """

    #: Method, as in ``indices.json``: ``"moat"``, ``"vbd"``, ``"efast"`` and so on.
    method: str
    #: Name of the response.
    response: str
    #: Parameters, or groups if parameters have groups.
    names: tuple[str, ...]
    #: Warnings of pleach about sample and estimates. Empty for indices of a results folder.
    warnings: tuple[str, ...]
    #: pleach's indices as in ``indices.json``, with the numbers of dropped evaluations.
    raw: Mapping[str, Any]
    #: Sample, shape (evaluations, parameters). ``None`` for indices of a results folder.
    X: Floats | None
    #: Responses, shape (evaluations,). ``None`` for indices of a results folder.
    Y: Floats | None

    def __init__(
        self,
        raw: Mapping[str, Any],
        warnings: tuple[str, ...] = (),
        X: Floats | None = None,
        Y: Floats | None = None,
    ) -> None:
        self.raw, self.warnings, self.X, self.Y = raw, warnings, X, Y
        self.method = str(raw["method"])
        self.response = str(raw["response"])
        self._arrays: dict[str, Floats] = {}
        if self.method == "regression":
            self.names = _names(raw["src"]["parameters"])
            for kind in ("src", "srrc"):
                self._add(kind, [entry["coefficient"] for entry in raw[kind]["parameters"]])
        else:
            entries: list[Mapping[str, Any]] = raw["parameters"]
            self.names = _names(entries)
            renamed = _SALIB.get(self.method, {})
            for key in entries[0] if entries else ():
                if key not in ("name", "failed"):
                    self._add(renamed.get(key, key), [entry[key] for entry in entries])
        if raw.get("pairs"):
            self._add_pairs(raw["pairs"])

    def _add(self, name: str, items: list[Any]) -> None:
        if not all(isinstance(item, Mapping) for item in items):
            self._arrays[name] = _floats(items)
            return
        self._arrays[name] = _floats([item["value"] for item in items])
        for part in ("conf", "low", "high"):
            numbers = _floats([item.get(part) for item in items])
            if part == "conf" or not np.isnan(numbers).all():
                self._arrays[f"{name}_{part}"] = numbers

    def _add_pairs(self, pairs: list[Mapping[str, Any]]) -> None:
        place = {name: number for number, name in enumerate(self.names)}
        for part, name in (("value", "S2"), ("conf", "S2_conf"), ("low", "S2_low"), ("high", "S2_high")):
            square = np.full((len(self.names), len(self.names)), np.nan)
            for pair in pairs:
                row, column = sorted((place[pair["one"]], place[pair["other"]]))
                square[row, column] = _floats([pair["second"].get(part)])[0]
            self._arrays[name] = square

    def __getitem__(self, name: str) -> Floats:
        try:
            return self._arrays[name]
        except KeyError:
            raise KeyError(f"{name}: not in the indices of {self.method}; known are {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def to_pandas(self) -> Any:
        """Returns a ``pandas.DataFrame``: one row per name, one column per index but those of second order.

        Raises :class:`ImportError` without pandas.
        """
        pandas: Any = importlib.import_module("pandas")

        flat = {name: numbers for name, numbers in self.items() if numbers.ndim == 1}
        return pandas.DataFrame(flat, index=pandas.Index(self.names, name="parameter"))

    def to_polars(self) -> Any:
        """Returns a ``polars.DataFrame``: a column ``parameter`` and the columns of :meth:`to_pandas`.

        Raises :class:`ImportError` without polars.
        """
        polars: Any = importlib.import_module("polars")

        flat = {name: numbers for name, numbers in self.items() if numbers.ndim == 1}
        return polars.DataFrame({"parameter": list(self.names), **flat})

    def to_xarray(self) -> Any:
        """Returns an ``xarray.Dataset`` with the dimension ``parameter``, and ``other`` for indices of second order.

        Raises :class:`ImportError` without xarray.
        """
        xarray: Any = importlib.import_module("xarray")

        axes = ("parameter", "other")
        variables = {name: (axes[: numbers.ndim], numbers) for name, numbers in self.items()}
        names = list(self.names)
        coordinates = {axis: names for axis in axes if any(axis in axes_of for axes_of, _ in variables.values())}
        attributes = {"method": self.method, "response": self.response}
        return xarray.Dataset(variables, coords=coordinates, attrs=attributes)

    def __repr__(self) -> str:
        columns = [name for name, array in self.items() if array.ndim == 1 and not name.endswith(("_low", "_high"))]
        width = max(map(len, (*self.names, "parameter")))
        header = " ".join([f"{'parameter':{width}}", *(f"{column:>12}" for column in columns)])
        lines = [f"{self.method} indices of {self.response}", header]
        for place, name in enumerate(self.names):
            lines.append(" ".join([f"{name:{width}}", *(f"{self[column][place]:12.4g}" for column in columns)]))
        return "\n".join(lines)


def _names(entries: list[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(str(entry["name"]) for entry in entries)


def _floats(items: list[Any]) -> Floats:
    return np.array([np.nan if item is None else item for item in items], dtype=np.float64)
