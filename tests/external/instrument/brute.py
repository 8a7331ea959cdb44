"""Finds the keys of tasks by brute force: a region depends on a parameter if two runs that differ in it alone give other bytes.

    python brute.py --script versions.py --function measure --module pipeline/versions.py --proposal proposal.json \
        --values '{"low": [40, 90]}' --tile tile.png

Runs all combinations of the values through the functions of the module, and through the function of the script. Prints a JSON
object with `keys`, the parameters that any output of each task depends on, and `different`, the combinations whose results differ.
"""

import argparse
import importlib.util
import itertools
import json
import pickle
from pathlib import Path

import imageio.v3 as imageio
import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--script", "--module", "--proposal", "--tile"):
        parser.add_argument(option, type=Path, required=True)
    parser.add_argument("--function", required=True)
    parser.add_argument("--values", type=json.loads, required=True)
    options = parser.parse_args()
    tile = imageio.imread(options.tile)[..., :3]
    function = getattr(loaded("original", options.script), options.function)
    module = loaded("cut", options.module)
    tasks = json.loads(options.proposal.read_text())["tasks"]
    names = list(options.values)
    found, different = {}, []
    for combination in itertools.product(*options.values.values()):
        values = dict(zip(names, combination))
        regions = {"tile": np.array(tile)}
        for task in tasks:
            found.setdefault(task["task"], {})[combination] = run(module, task, regions, values)
        result = bytes_of(function(np.array(tile), **values))
        last = [task for task in tasks if task["lines"] != "added"][-1]
        if bytes_of(regions[last["writes"][-1]["region"]]) != result:
            different.append(values)
    keys = {task: [name for index, name in enumerate(names) if depends(of, index)] for task, of in found.items()}
    print(json.dumps({"keys": keys, "different": different}))


def loaded(name, file):
    specification = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def run(module, task, regions, values):
    inputs = [frozen(regions[read["region"]]) for read in task["reads"]]
    result = getattr(module, task["function"])(*inputs, **{name: values[name] for name in task["parameters"]})
    results = [result] if len(task["writes"]) == 1 else list(result)
    regions.update({write["region"]: value for write, value in zip(task["writes"], results)})
    return bytes_of(results)


def frozen(value):
    """Returns a value as pleach passes it: read-only."""
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flags.writeable = False
    return value


def bytes_of(value):
    return pickle.dumps(value)


def depends(results, index):
    """Returns whether two combinations that differ at an index alone have different results."""
    groups = {}
    for combination, found in results.items():
        groups.setdefault(combination[:index] + combination[index + 1 :], set()).add(found)
    return any(len(group) > 1 for group in groups.values())


if __name__ == "__main__":
    main()
