"""Evaluates parameter sets by a plain loop over the six functions of nuclei.py, without reuse.

    python loop.py --example examples/python-nuclei --sets samples.csv --out responses.csv tiles/*.png

The header of the sets names parameters as segmentation.json does; missing ones have their defaults, and a column
"evaluation" numbers the sets. The responses are in the format of pleach's responses.csv: one row per evaluation and tile,
numbers in the shortest form that parses to the same value.
"""

import argparse
import csv
import json
import sys
import time
import tomllib
from pathlib import Path

import imageio.v3 as imageio
import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", type=Path, required=True, help="folder with nuclei.py")
    parser.add_argument("--sets", type=Path, required=True, help="CSV of parameter sets")
    parser.add_argument("--out", type=Path, required=True, help="CSV of responses")
    parser.add_argument("--limit", type=int, help="evaluate the first LIMIT sets only")
    parser.add_argument("tiles", type=Path, nargs="+")
    options = parser.parse_args()

    sys.path.insert(0, str(options.example))
    import nuclei

    tasks = described_tasks(options.example)
    tiles = [(path.stem, read_tile(path)) for path in options.tiles]
    with options.sets.open(newline="") as file:
        sets = list(csv.DictReader(file))[: options.limit]
    start = time.perf_counter()
    rows = []
    for number, row in enumerate(sets, start=1):
        evaluation = row.pop("evaluation", str(number))
        arguments = [task.arguments(row) for task in tasks.values()]
        unknown = row.keys() - {name for task in tasks.values() for name in task.parameters}
        if unknown:
            sys.exit(f"{options.sets}: unknown parameters {sorted(unknown)}")
        for name, tile in tiles:
            rows.append((evaluation, name, evaluate(nuclei, tile, *arguments)))
    seconds = time.perf_counter() - start
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["evaluation", "tile", *rows[0][2]])
        for evaluation, name, table in rows:
            writer.writerow([evaluation, name, *map(shortest, table.values())])
    print(f"{len(rows)} runs in {seconds:.2f} s", file=sys.stderr)


def evaluate(nuclei, tile, deconvolve, threshold, clean, distance, watershed, features):
    hematoxylin = read_only(nuclei.deconvolve(tile, **deconvolve))
    mask = as_mask(nuclei.threshold(hematoxylin, **threshold))
    cleaned = as_mask(nuclei.clean(mask, **clean))
    heights = read_only(nuclei.distance(cleaned, **distance))
    labels = read_only(nuclei.watershed(heights, cleaned, **watershed).astype(np.uint32))
    return nuclei.features(labels, hematoxylin, **features)


class Task:
    """Parameters of a task with types and defaults, texts of choices, and constants."""

    def __init__(self, described, operation):
        self.parameters = {parameter["name"]: parameter for parameter in described.get("parameters", [])}
        choices = {argument["name"]: argument.get("choices") for argument in operation.get("arguments", [])}
        self.choices = {name: texts for name, texts in choices.items() if texts}
        self.constants = operation.get("constants", {})

    def arguments(self, row):
        found = {}
        for name, parameter in self.parameters.items():
            value = float(row.get(name, parameter["default"]))
            if parameter["type"] == "integer":
                value = int(value)
            found[name] = self.choices[name][str(value)] if name in self.choices else value
        return found | self.constants


def described_tasks(folder):
    manifest = tomllib.loads((folder / "pleach.toml").read_text())
    operations = {operation["name"]: operation for operation in manifest["operation"]}
    stage = json.loads((folder / "segmentation.json").read_text())
    tasks = {task["task"]: Task(task, operations[task["operation"]]) for task in stage["tasks"]}
    assert list(tasks) == ["deconvolve", "threshold", "clean", "distance", "watershed", "features"]
    return tasks


def read_tile(path):
    """Reads RGB of 8 bits; an alpha channel is dropped."""
    return read_only(np.ascontiguousarray(imageio.imread(path)[..., :3]))


def as_mask(region):
    return read_only(region.astype(np.uint8) * 255)


def read_only(array):
    array.flags.writeable = False
    return array


def shortest(value):
    return np.format_float_positional(value, unique=True, trim="-")


if __name__ == "__main__":
    main()
