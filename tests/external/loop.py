"""Evaluates parameter sets by a plain loop over the functions of an example, without reuse.

    python loop.py --example examples/python-nuclei --sets samples.csv --out responses.csv tiles/*.png

The loop calls the functions in the order of the tasks in the example's stage files. The header of the sets names parameters
as those files do. Missing ones have their defaults, and a column "evaluation" numbers the sets. The responses are in the
format of pleach's responses.csv: one row per evaluation and tile, numbers in the shortest form that parses to the same value.
A workflow with a reference reads X_labels.png of the folder --references for a tile X: a label map of two nuclei or more.
"""

import argparse
import csv
import functools
import importlib
import json
import sys
import time
import tomllib
from pathlib import Path

import imageio.v3 as imageio
import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", type=Path, required=True, help="folder with workflow.json")
    parser.add_argument("--sets", type=Path, required=True, help="CSV of parameter sets")
    parser.add_argument("--out", type=Path, required=True, help="CSV of responses")
    parser.add_argument("--references", type=Path, help="folder of label maps")
    parser.add_argument("--limit", type=int, help="evaluate the first LIMIT sets only")
    parser.add_argument("tiles", type=Path, nargs="+")
    options = parser.parse_args()

    tasks = described_tasks(options.example)
    inputs = [(path.stem, read_inputs(path, options.references)) for path in options.tiles]
    with options.sets.open(newline="") as file:
        sets = list(csv.DictReader(file))[: options.limit]
    start = time.perf_counter()
    rows = []
    for number, row in enumerate(sets, start=1):
        evaluation = row.pop("evaluation", str(number))
        unknown = row.keys() - {name for task in tasks for name in task.parameters}
        if unknown:
            sys.exit(f"{options.sets}: unknown parameters {sorted(unknown)}")
        arguments = [task.arguments(row) for task in tasks]
        for name, regions in inputs:
            rows.append((evaluation, name, evaluate(tasks, regions, arguments)))
    seconds = time.perf_counter() - start
    write_responses(options.out, rows)
    print(f"{len(rows)} runs in {seconds:.2f} s", file=sys.stderr)


def evaluate(tasks, inputs, arguments):
    """Returns the outputs of the last task, a table. `arguments` has the keyword arguments of each task."""
    regions = dict(inputs)
    for task, keywords in zip(tasks, arguments, strict=True):
        regions |= zip(task.writes, task.call([regions[name] for name in task.reads], keywords), strict=True)
    return regions[tasks[-1].writes[0]]


class Task:
    """A task: its function, the regions that it reads and writes, and its parameters with types, defaults and choices."""

    def __init__(self, described, operation):
        self.name, self.reads, self.writes = described["task"], described["reads"], described["writes"]
        module, _, name = operation["name"].removeprefix("python:").rpartition(".")
        self.function = getattr(importlib.import_module(module), name)
        self.setup = operation.get("setup")
        self.outputs = [output["type"] for output in operation["outputs"]]
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
            argument = parameter.get("argument", name)
            found[argument] = self.choices[argument][str(value)] if argument in self.choices else value
        return found | self.constants

    def call(self, inputs, arguments):
        """Returns the outputs, converted as pleach does."""
        first = [set_up(self.setup)] if self.setup else []
        result = self.function(*first, *inputs, **arguments)
        results = [result] if len(self.outputs) == 1 else result
        return [converted(output, element) for output, element in zip(results, self.outputs, strict=True)]


@functools.cache
def set_up(entry):
    """Returns the result of a setup function, once a process."""
    module, _, name = entry.partition(":")
    return getattr(importlib.import_module(module), name)()


def described_tasks(folder):
    """Returns the tasks of workflow.json, in its order. Modules of the folder are imported."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    workflow = json.loads((folder / "workflow.json").read_text())
    operations = {}
    for manifest in workflow["operations"]:
        entries = tomllib.loads((folder / manifest).read_text())["operation"]
        operations |= {operation["name"]: operation for operation in entries}
    stages = [json.loads((folder / stage["descriptor"]).read_text()) for stage in workflow["stages"]]
    return [Task(task, operations[task["operation"]]) for stage in stages for task in stage["tasks"]]


def read_inputs(tile, references=None):
    """Returns the regions of a tile: its pixels, and the label map of a folder."""
    regions = {"tile": read_tile(tile)}
    if references:
        regions["reference"] = read_only(imageio.imread(references / f"{tile.stem}_labels.png").astype(np.uint32))
    return regions


def read_tile(path):
    """Reads RGB of 8 bits; an alpha channel is dropped."""
    return read_only(np.ascontiguousarray(imageio.imread(path)[..., :3]))


def converted(output, element):
    if element == "table":
        return output
    if element == "mask":
        output = output.astype(np.uint8) * 255
    return read_only(output.astype(np.uint32) if element == "labels" else output)


def read_only(array):
    array.flags.writeable = False
    return array


def write_responses(path, rows):
    """Writes rows of evaluation, tile and table in the format of responses.csv."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["evaluation", "tile", *rows[0][2]])
        for evaluation, name, table in rows:
            writer.writerow([evaluation, name, *map(shortest, table.values())])


def shortest(value):
    return np.format_float_positional(value, unique=True, trim="-")


if __name__ == "__main__":
    main()
