"""A study file of pleach, as far as the peer needs it: tiles, parameter sets, what to compare with.

What pleach would refuse is not looked for here: run it there first.
"""

from __future__ import annotations

import csv
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import SALib.sample.morris

STAGES = Path(__file__).resolve().parents[2] / "crates/pathology/descriptors/nuclei"
METRICS = ["dice", "jaccard", "pixel-difference"]


class Problem(TypedDict):
    """The parameters that vary, as SALib wants them."""

    num_vars: int
    names: list[str]
    bounds: list[list[float]]


@dataclass(frozen=True)
class Parameter:
    """A parameter: its default, and the values, or else the range, that it is sampled from."""

    name: str
    default: float
    values: list[float] | None
    bounds: tuple[float, float]

    @property
    def varies(self) -> bool:
        """Whether there is more than one value."""
        return self.bounds[0] < self.bounds[1]

    def at(self, share: float) -> float:
        """The value at a share, 0 to 1, of the range; a step of more than half the range always changes it."""
        if self.values is None:
            low, high = self.bounds
            return low + share * (high - low)
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]


@dataclass(frozen=True)
class Study:
    """The study of a file."""

    tiles: dict[str, Path]  # by name
    masks: dict[str, Path] | None  # what to compare with, by tile; none: the output at defaults
    normalize: bool
    table: Path | None  # the file of parameter sets of a study without sampling
    seed: int
    trajectories: int
    levels: int
    metric: str
    parameters: list[Parameter]

    @property
    def metrics(self) -> list[str]:
        """The columns of the responses: the metric that is analyzed comes first."""
        return [self.metric, *(metric for metric in METRICS if metric != self.metric)]

    @property
    def problem(self) -> Problem:
        """What SALib wants to know."""
        varying = [parameter for parameter in self.parameters if parameter.varies]
        return {
            "num_vars": len(varying),
            "names": [parameter.name for parameter in varying],
            "bounds": [list(parameter.bounds) for parameter in varying],
        }

    def sample(self) -> list[dict[str, float]]:
        """Morris trajectories by SALib: not those of pleach, whose `samples.csv` is the better choice to compare."""
        problem = self.problem
        problem["bounds"] = [[0, 1]] * problem["num_vars"]
        design = SALib.sample.morris.sample(problem, self.trajectories, num_levels=self.levels, seed=self.seed)
        by_name = {parameter.name: parameter for parameter in self.parameters}
        fixed = {parameter.name: parameter.bounds[0] for parameter in self.parameters if not parameter.varies}
        rows = (zip(problem["names"], row, strict=True) for row in design)
        return [{**fixed, **{name: by_name[name].at(share) for name, share in row}} for row in rows]

    def read_table(self, file: Path) -> list[dict[str, float]]:
        """The parameter sets of a CSV file; a parameter without a column is at its default."""
        with file.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        return [{p.name: float(row.get(p.name, p.default)) for p in self.parameters} for row in rows]

    @property
    def defaults(self) -> dict[str, float]:
        """The parameter set whose output is the reference."""
        return {parameter.name: parameter.default for parameter in self.parameters}


def read(file: Path) -> Study:
    """Reads a study of the built-in workflow."""
    document = tomllib.loads(file.read_text())
    inputs, method = document["input"], document["method"]
    found = {path for pattern in inputs["tiles"] for path in matching(file.parent, pattern)}
    paths = sorted(found)
    stems = [path.stem for path in paths]
    seen = [str(path.relative_to(file.parent) if path.is_relative_to(file.parent) else path) for path in paths]
    names = [stem if stems.count(stem) == 1 else place for stem, place in zip(stems, seen, strict=True)]
    tiles = dict(zip(names, paths, strict=True))
    reference, masks = inputs.get("reference", "defaults"), None
    if reference != "defaults":
        folder = file.parent / reference
        labels = {name: folder / f"{path.stem}_labels.png" for name, path in tiles.items()}
        masks = {name: mask if mask.is_file() else folder / f"{tiles[name].stem}.png" for name, mask in labels.items()}
    return Study(
        tiles=tiles,
        masks=masks,
        normalize=inputs.get("normalize", True),
        table=file.parent / method["file"] if method["kind"] == "table" else None,
        seed=document["study"].get("seed", 0),
        trajectories=method.get("trajectories", 10),
        levels=method.get("levels", 20),
        metric=document.get("response", {}).get("metric", METRICS[0]),
        parameters=parameters(document.get("parameters", {})),
    )


def matching(folder: Path, pattern: str) -> list[Path]:
    """The files of a pattern, label maps left out, or the file that is named."""
    if (folder / pattern).is_file():
        return [folder / pattern]
    root = Path(pattern).anchor
    found = Path(root).glob(pattern[len(root) :]) if root else folder.glob(pattern)
    return [path for path in found if path.is_file() and not path.stem.endswith("_labels")]


def parameters(given: dict[str, dict]) -> list[Parameter]:
    """The parameters of the segmentation, with the ranges that a study gives them."""
    declared: dict[str, dict] = {}
    for task in json.loads((STAGES / "segmentation.json").read_text())["tasks"]:
        for entry in task.get("parameters", []):
            declared.setdefault(entry["name"], entry)
    return [parameter(entry, given.get(name, {})) for name, entry in declared.items()]


def parameter(declared: dict, given: dict) -> Parameter:
    """One parameter; a study that gives values, a range or a fixed value replaces the declared ones."""
    space = given if given.keys() & {"values", "range", "fixed"} else declared
    default = float(space.get("fixed", given.get("default", declared["default"])))
    if "fixed" in space:
        values = [default]
    elif "values" in space:
        values = [float(value) for value in space["values"]]
    else:
        low, high = map(float, space["range"])
        step = space.get("step", 1 if declared["type"] == "integer" else None)
        if step is None:
            return Parameter(declared["name"], default, None, (low, high))
        values = [low + step * count for count in range(int((high - low) / step + 1e-9) + 1)]
    return Parameter(declared["name"], default, values, (min(values), max(values)))
