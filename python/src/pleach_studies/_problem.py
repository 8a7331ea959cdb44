"""Parameters of a model or a workflow, from and to SALib."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from . import _toml
from ._program import call

Distribution = Literal["uniform", "log-uniform", "normal", "log-normal", "truncated-normal", "triangular"]

#: SALib's name of each distribution.
_SALIB = {
    "uniform": "unif",
    "log-uniform": "logunif",
    "normal": "norm",
    "log-normal": "lognorm",
    "truncated-normal": "truncnorm",
    "triangular": "triang",
}
#: Numbers in SALib's bounds of each distribution.
_NUMBERS = {"unif": (2,), "logunif": (2,), "norm": (2,), "lognorm": (2,), "truncnorm": (4,), "triang": (2, 3)}
_NEEDED = {
    "uniform": ("range",),
    "log-uniform": ("range",),
    "normal": ("mean", "std"),
    "log-normal": ("mean", "std"),
    "truncated-normal": ("range", "mean", "std"),
    "triangular": ("range", "mode"),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter and its values. Each field is the key of a ``[parameters.NAME]`` section of a study file.

    ``range``
        Smallest and largest value. With ``step``, the values are ``range[0]``, ``range[0] + step`` and so on.
    ``values``
        The allowed values, at least two.
    ``fixed``
        One value. Only in a :class:`~pleach_studies.Study`.
    ``default``
        Value in the reference of a study.
    ``distribution``
        Needs ``range`` (uniform, log-uniform), ``mean`` and ``std`` (normal, log-normal), these and ``range``
        (truncated-normal), or ``range`` and ``mode`` (triangular). ``mean`` and ``std`` of log-normal are those of
        the natural logarithm.
    ``type``
        ``"integer"`` for whole numbers. Only in a :class:`Problem`: in a study the workflow determines the type.
    ``group``
        Label of the parameters that move together. Only in a :class:`Problem`.

    Raises :class:`ValueError` with the name of the parameter if the fields contradict each other.
    """

    name: str
    range: tuple[float, float] | None = None
    step: float | None = None
    values: Sequence[float] | None = None
    fixed: float | None = None
    default: float | None = None
    distribution: Distribution | None = None
    mean: float | None = None
    std: float | None = None
    mode: float | None = None
    type: Literal["real", "integer"] | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        # Callers without a type checker may pass anything.
        is_text = isinstance(self.name, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not is_text or not self.name.strip() or any(c in self.name for c in "\r\n"):
            raise ValueError(f"the name {self.name!r} is not allowed; one line of text is allowed")
        if self.range is not None:
            object.__setattr__(self, "range", tuple(self.range))
            if len(self.range) != 2:
                raise self._wrong(f"range has {len(self.range)} numbers; a smallest and a largest value are needed")
            if not self.range[0] < self.range[1]:
                raise self._wrong(f"range {list(self.range)}: the first number must be below the second")
        if self.values is not None:
            object.__setattr__(self, "values", tuple(self.values))
            if len(self.values) < 2:
                raise self._wrong("values has fewer than 2 entries; use fixed for one value")
        given = [name for name in ("values", "fixed", "distribution") if getattr(self, name) is not None]
        if len(given) > 1 or (self.range is not None and given and given != ["distribution"]):
            raise self._wrong(f"one of range, values, fixed and distribution is allowed, not {self._given()}")
        if self.step is not None and (self.range is None or given):
            raise self._wrong("step needs range, without a distribution")
        needed: tuple[str, ...] = ()
        if self.distribution is not None:
            if self.distribution not in _NEEDED:
                allowed = ", ".join(_NEEDED)
                raise self._wrong(f"distribution {self.distribution!r} is not allowed; allowed are {allowed}")
            needed = _NEEDED[self.distribution]
        for field in ("mean", "std", "mode", "range"):
            if field in needed and getattr(self, field) is None:
                raise self._wrong(f"distribution {self.distribution} needs {field}")
            if field not in needed and getattr(self, field) is not None and (field != "range" or self.distribution):
                raise self._wrong(f"{field} is not allowed with distribution {self.distribution}")

    def _given(self) -> str:
        fields = ("range", "values", "fixed", "distribution")
        return " and ".join(field for field in fields if getattr(self, field) is not None)

    def _wrong(self, message: str) -> ValueError:
        return ValueError(f"parameter {self.name}: {message}")

    def to_toml(self) -> str:
        """Returns the section ``[parameters.NAME]`` of a study file."""
        fields = ("range", "step", "values", "fixed", "distribution", "mean", "std", "mode", "default", "type", "group")
        entries = {field: getattr(self, field) for field in fields}
        return _toml.section(f"[parameters.{_toml.key(self.name)}]", entries)


class Problem:
    """The varied parameters of a model of your own.

    Create it from :class:`Parameter` objects, or with :meth:`from_salib`::

        Problem([Parameter("sigma", range=(0.5, 4)), Parameter("size", range=(3, 15), step=2, type="integer")])
        Problem.from_salib({"names": ["x1", "x2"], "bounds": [[0, 1], [0, 1]]})

    Raises :class:`ValueError` without parameters, for a name that occurs twice, and for a parameter without values or
    with a fixed one.
    """

    def __init__(self, parameters: Iterable[Parameter]) -> None:
        self.parameters: tuple[Parameter, ...] = tuple(parameters)
        self._salib: dict[str, Any] | None = None
        if not self.parameters:
            raise ValueError("a problem has at least one parameter")
        seen: set[str] = set()
        for parameter in self.parameters:
            if parameter.name in seen:
                raise ValueError(f"parameter {parameter.name}: the name occurs twice; names must be unique")
            seen.add(parameter.name)
            if parameter.fixed is not None:
                raise ValueError(f"parameter {parameter.name}: fixed; a problem has varied parameters only")
            if parameter.range is None and parameter.values is None and parameter.distribution is None:
                raise ValueError(f"parameter {parameter.name}: range, values or distribution is needed")

    @classmethod
    def from_salib(cls, problem: Mapping[str, Any]) -> Problem:
        """Reads SALib's problem: ``names`` and ``bounds``, optionally ``num_vars``, ``groups`` and ``dists``.

        Also takes SALib's ``ProblemSpec``. Raises :class:`ValueError` with the key and the index of a wrong entry.
        """
        known = ("num_vars", "names", "bounds", "groups", "dists", "outputs", "sample_scaled")
        for key in problem:
            if key not in known:
                raise ValueError(f"{key!r} is not a key of a problem; allowed are {', '.join(known[:5])}")
        names = _entries(problem, "names", None)
        count = len(names)
        if "num_vars" in problem and problem["num_vars"] != count:
            raise ValueError(f"num_vars is {problem['num_vars']}; {count} is needed, one per name")
        bounds = _entries(problem, "bounds", count)
        groups = _entries(problem, "groups", count) if problem.get("groups") is not None else None
        dists = _entries(problem, "dists", count) if problem.get("dists") is not None else None
        parameters: list[Parameter] = []
        kept: list[list[float]] = []
        for place, name in enumerate(names):
            dist = "unif" if dists is None else str(dists[place])
            numbers = _numbers(f"bounds[{place}]", bounds[place])
            if dist not in _NUMBERS:
                raise ValueError(f"dists[{place}]: {dist!r} is not allowed; allowed are {', '.join(_NUMBERS)}")
            if len(numbers) not in _NUMBERS[dist]:
                needed = " or ".join(map(str, _NUMBERS[dist]))
                raise ValueError(f"bounds[{place}]: {len(numbers)} numbers for {dist}; {needed} are needed")
            group = None if groups is None else str(groups[place])
            try:
                parameters.append(_of_salib(name, dist, numbers, group))
            except ValueError as error:
                raise ValueError(f"bounds[{place}]: {error}") from None
            kept.append(numbers)
        found = cls(parameters)
        # The peak of a triangle is a fraction in SALib: keeping the dict avoids rounding.
        found._salib = {"num_vars": count, "names": list(names), "bounds": kept}
        if groups is not None:
            found._salib["groups"] = [str(group) for group in groups]
        if dists is not None:
            found._salib["dists"] = [str(dist) for dist in dists]
        return found

    @classmethod
    def of(cls, workflow: str | Path, *, python: str | Path | None = None) -> Problem:
        """Returns the varied parameters of a workflow, with its values, defaults and types.

        ``workflow`` is the name of a built-in workflow, such as ``"nuclei"``, or the path of a workflow file.
        ``python`` is the environment of its operations in Python.

        Raises :class:`PleachError` for a wrong workflow.
        """
        options = [] if python is None else [f"--python={python}"]
        document = json.loads(call(["workflow", "show", workflow, "--json", *options], Path()))
        return cls(_of_workflow(entry) for entry in document["parameters"] if _is_varied(entry["domain"]))

    def to_salib(self) -> dict[str, Any]:
        """Returns SALib's problem, a new dict with ``num_vars``, ``names`` and ``bounds``.

        It has ``groups`` and ``dists`` if a parameter has a group or a distribution. SALib knows no steps, lists of
        values, whole numbers and defaults: the bounds of such a parameter are its smallest and largest value.
        """
        if self._salib is not None:
            return copy.deepcopy(self._salib)
        bounds = [_bounds(parameter) for parameter in self.parameters]
        found: dict[str, Any] = {"num_vars": len(self), "names": list(self.names), "bounds": bounds}
        if any(parameter.group is not None for parameter in self.parameters):
            found["groups"] = [parameter.group or parameter.name for parameter in self.parameters]
        if any(parameter.distribution is not None for parameter in self.parameters):
            found["dists"] = [_SALIB[parameter.distribution or "uniform"] for parameter in self.parameters]
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the columns of a sample."""
        return tuple(parameter.name for parameter in self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.parameters == other.parameters

    def __hash__(self) -> int:
        return hash(self.parameters)

    def __repr__(self) -> str:
        return f"Problem({list(self.parameters)!r})"

    def write(self, folder: Path) -> Path:
        """Writes the file for ``pleach sample`` and ``pleach analyze`` into a folder and returns its path.

        The file is ``problem.json`` in SALib's format, or ``problem.toml`` if SALib cannot express the problem.
        """
        if all(_is_salib(parameter) for parameter in self.parameters):
            path = folder / "problem.json"
            content = json.dumps(self.to_salib(), allow_nan=False)
        else:
            path = folder / "problem.toml"
            content = "\n".join(parameter.to_toml() for parameter in self.parameters)
        path.write_text(content, encoding="utf-8")
        return path


def problem_of(problem: Problem | Mapping[str, Any]) -> Problem:
    """Returns a problem, or reads SALib's."""
    return problem if isinstance(problem, Problem) else Problem.from_salib(problem)


def _entries(problem: Mapping[str, Any], key: str, count: int | None) -> list[Any]:
    entries = problem.get(key)
    if entries is None:
        raise ValueError(f"{key}: missing; a list is needed")
    if isinstance(entries, str | Mapping) or not hasattr(entries, "__len__"):
        raise ValueError(f"{key}: {entries!r} is not a list")
    if count is None and len(entries) == 0:
        raise ValueError(f"{key}: empty; at least one entry is needed")
    if count is not None and len(entries) != count:
        raise ValueError(f"{key} has {len(entries)} entries; {count} are needed, one per name")
    return list(entries)


def _numbers(at: str, entry: Any) -> list[float]:
    try:
        numbers = [x.item() if hasattr(x, "item") else x for x in entry]
    except TypeError:
        raise ValueError(f"{at}: {entry!r} is not a list of numbers") from None
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise ValueError(f"{at}: {number!r} is not a finite number")
    return numbers


def _of_salib(name: str, dist: str, numbers: list[float], group: str | None) -> Parameter:
    if dist == "unif":
        return Parameter(name, range=(numbers[0], numbers[1]), group=group)
    if dist == "logunif":
        return Parameter(name, range=(numbers[0], numbers[1]), distribution="log-uniform", group=group)
    if dist == "norm":
        return Parameter(name, mean=numbers[0], std=numbers[1], distribution="normal", group=group)
    if dist == "lognorm":
        return Parameter(name, mean=numbers[0], std=numbers[1], distribution="log-normal", group=group)
    if dist == "truncnorm":
        low, high, mean, std = numbers
        return Parameter(name, (low, high), distribution="truncated-normal", mean=mean, std=std, group=group)
    low, high, peak = numbers if len(numbers) == 3 else (0, *numbers)
    if not 0 <= peak <= 1:
        raise ValueError(f"the peak {peak} is not allowed; a fraction of the range, 0 to 1, is allowed")
    mode = min(max(low + peak * (high - low), low), high)
    return Parameter(name, (low, high), distribution="triangular", mode=mode, group=group)


def _is_varied(domain: Mapping[str, Any]) -> bool:
    return domain["kind"] != "fixed" and (domain["kind"] != "levels" or len(domain["values"]) > 1)


def _of_workflow(entry: Mapping[str, Any]) -> Parameter:
    """Reads a parameter of ``pleach workflow show --json``."""

    def number(value: Mapping[str, float]) -> float:
        [found] = value.values()
        return found

    domain = entry["domain"]
    given: dict[str, Any] = {"type": entry["type"], "default": number(entry["default"])}
    if domain["kind"] == "levels":
        return Parameter(entry["name"], values=[number(value) for value in domain["values"]], **given)
    shape = domain.get("distribution") or {"shape": "uniform", **domain}
    if "low" in shape:
        given["range"] = (shape["low"], shape["high"])
    if "deviation" in shape:
        given["mean"], given["std"] = shape["mean"], shape["deviation"]
    if "mode" in shape:
        given["mode"] = shape["mode"]
    if shape["shape"] != "uniform":
        given["distribution"] = shape["shape"].replace("_", "-")
    return Parameter(entry["name"], **given)


def _is_salib(parameter: Parameter) -> bool:
    return all(x is None for x in (parameter.step, parameter.values, parameter.default)) and parameter.type != "integer"


def _bounds(parameter: Parameter) -> list[float]:
    if parameter.values is not None:
        return [min(parameter.values), max(parameter.values)]
    if parameter.distribution in ("normal", "log-normal"):
        assert parameter.mean is not None and parameter.std is not None
        return [parameter.mean, parameter.std]
    assert parameter.range is not None
    low, high = parameter.range
    if parameter.distribution == "truncated-normal":
        assert parameter.mean is not None and parameter.std is not None
        return [low, high, parameter.mean, parameter.std]
    if parameter.distribution == "triangular":
        assert parameter.mode is not None
        return [low, high, (parameter.mode - low) / (high - low)]
    return [low, high]
