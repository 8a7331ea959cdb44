"""Evaluates parameter sets by the one function of a script, without pleach.

    python plain.py --script segment.py --function segment --folder pipeline --sets samples.csv --out responses.csv tiles/*.png

`--folder` is that of `pleach instrument`, whose manifest has the texts of choices. The responses are in the format of pleach's
responses.csv.
"""

import argparse
import csv
import importlib.util
import inspect
import json
import tomllib
from pathlib import Path

import imageio.v3 as imageio
import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--script", "--folder", "--sets", "--out"):
        parser.add_argument(option, type=Path, required=True)
    parser.add_argument("--function", required=True)
    parser.add_argument("tiles", type=Path, nargs="+")
    options = parser.parse_args()
    function = loaded(options.script, options.function)
    convert = conversions(options.folder, function)
    tiles = [(path.stem, imageio.imread(path)[..., :3]) for path in options.tiles]
    rows = []
    with options.sets.open(newline="") as file:
        for row in csv.DictReader(file):
            evaluation = row.pop("evaluation")
            arguments = {name: convert[name](text) for name, text in row.items()}
            for name, tile in tiles:
                rows.append((evaluation, name, function(np.array(tile), **arguments)))
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["evaluation", "tile", *rows[0][2]])
        for evaluation, name, table in rows:
            shortest = [np.format_float_positional(value, unique=True, trim="-") for value in table.values()]
            writer.writerow([evaluation, name, *shortest])


def loaded(script, function):
    specification = importlib.util.spec_from_file_location("original", script)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return getattr(module, function)


def conversions(folder, function):
    """Returns for each parameter the conversion of a text of samples.csv to the argument of the function."""
    manifest = tomllib.loads((folder / "pleach.toml").read_text())
    declared = [argument for operation in manifest["operation"] for argument in operation.get("arguments", [])]
    choices = {argument["name"]: argument["choices"] for argument in declared if "choices" in argument}
    stage = json.loads((folder / "stage.json").read_text())
    types = {
        parameter["name"]: parameter["type"]
        for task in stage["tasks"]
        for parameter in task.get("parameters", [])
        if "type" in parameter
    }
    found = {}
    for name, kind in types.items():
        default = inspect.signature(function).parameters[name].default
        if name in choices:
            found[name] = choices[name].get
        elif isinstance(default, bool):
            found[name] = lambda text: bool(int(text))
        else:
            found[name] = int if kind == "integer" else float
    return found


if __name__ == "__main__":
    main()
