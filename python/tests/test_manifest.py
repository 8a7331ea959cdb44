"""Declared operations, and the manifest that the program reads."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import pleach_studies
from pleach_studies import find_program, manifest, operation

MODULE = '''
import statistics
import numpy as np
from scipy import ndimage
from pleach_studies import operation
import beside

@operation(
    inputs={"tile": {"type": "bgr8", "channels": "rgb"}},
    outputs={"dark": "array-f32"},
    device="accelerator",
    device_memory="1GB",
)
def darkness(tile):
    return 255 - tile.mean(axis=2).astype("f4")

@operation(
    inputs={"dark": "array-f32"},
    outputs={"area": "table"},
    arguments={"level": (0.0, 255.0), "side": [1, 3], "mode": ["nearest", "reflect"]},
    constants={"floor": 0.5},
    version=2,
)
def area(dark, *, level, side, mode, floor):
    smooth = ndimage.uniform_filter(dark, side, mode=mode)
    return {"area": float((smooth > max(level, floor)).mean())}
'''

MANIFEST = '''# Written by python -m pleach_studies.manifest from the declarations in the modules.

[package]
requires = ["numpy", "scikit-image", "scipy"]

[[operation]]
name = "python:dark.darkness"
version = 1
inputs = [{ name = "tile", type = "bgr8", channels = "rgb" }]
outputs = [{ name = "dark", type = "array-f32" }]
device = "accelerator"
device_memory = "1GB"

[[operation]]
name = "python:dark.area"
version = 2
inputs = [{ name = "dark", type = "array-f32" }]
outputs = [{ name = "area", type = "table" }]
arguments = [{ name = "level", type = "real", low = 0.0, high = 255.0 }, { name = "side", type = "integer", values = [1, 3] }, \
{ name = "mode", choices = { 1 = "nearest", 2 = "reflect" } }]
constants = { floor = 0.5 }
'''


class Manifests(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "dark.py").write_text(MODULE)
        (self.folder / "beside.py").write_text("import skimage\n")

    def call(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "pleach_studies.manifest", *arguments]
        environment = dict(os.environ, PYTHONPATH=str(Path(pleach_studies.__file__).parent.parent))
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def test_the_manifest_has_the_declarations_and_the_imported_distributions(self) -> None:
        answer = self.call("dark")
        # An installed package would be a distribution of its own.
        text = answer.stdout.replace('"pleach-studies", ', "")
        self.assertEqual((text, answer.stderr, answer.returncode), (MANIFEST, "", 0))

    def test_distributions_of_python_3_10_are_those_of_later_ones(self) -> None:
        with mock.patch.object(manifest.sys, "version_info", (3, 10)):
            found = manifest._distributions()
        for top in ("numpy", "scipy", "skimage"):
            self.assertEqual(found[top], [{"skimage": "scikit-image"}.get(top, top)])

    def test_the_program_reads_the_manifest(self) -> None:
        self.assertEqual(self.call("dark", "--out", "pleach.toml").returncode, 0)
        parameters = [
            {"name": "level", "type": "real", "default": 9, "range": [0, 99], "step": 9},
            {"name": "side", "type": "integer", "default": 1, "values": [1, 3]},
            {"name": "mode", "type": "integer", "default": 1, "values": [1, 2]},
        ]
        tile = {"region": "tile", "type": "bgr8"}
        darkness = {"operation": "python:dark.darkness", "version": 1, "reads": ["tile"], "writes": ["dark"]}
        area = {"operation": "python:dark.area", "version": 2, "reads": ["dark"], "writes": ["area"]}
        stage = {
            "stage": "dark",
            "inputs": [tile],
            "outputs": [{"region": "area", "type": "table"}],
            "tasks": [{"task": "darkness", **darkness}, {"task": "area", "parameters": parameters, **area}],
        }
        workflow = {
            "workflow": "dark",
            "operations": ["pleach.toml"],
            "inputs": [tile],
            "stages": [{"descriptor": "stage.json"}],
            "response": {"region": "area", "metrics": [{"metric": "area", "over_tiles": "mean"}]},
        }
        (self.folder / "stage.json").write_text(json.dumps(stage))
        (self.folder / "workflow.json").write_text(json.dumps(workflow))
        check = [find_program(), "workflow", "check", "workflow.json", "--python", sys.executable]
        answer = subprocess.run(check, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual((answer.stderr, answer.returncode), ("", 0))

    def test_mistakes_are_named(self) -> None:
        self.assertEqual(self.call("beside").stderr, "error: beside: no function is declared with pleach_studies.operation\n")
        self.assertEqual(self.call("nothing").stderr, "error: No module named 'nothing'\n")
        (self.folder / "dark.py").write_text(MODULE.replace("[1, 3]", "{}"))
        answer = self.call("dark", "--out", "pleach.toml")
        text = "error: argument side: {}; (low, high), a list of integers or a list of texts is allowed\n"
        self.assertEqual((answer.stderr, answer.returncode), (text, 2))
        self.assertFalse((self.folder / "pleach.toml").exists())

    def test_declarations_must_match_the_function(self) -> None:
        def two(tile: object, *, level: float, count: int = 1) -> None:
            del tile, level, count

        two.__qualname__ = "two"
        outputs = {"mask": "mask"}
        for given, text in [
            ({"arguments": {"level": (0, 1)}}, "parameter tile is not declared; add it to inputs, arguments or constants"),
            ({"inputs": {"mask": "mask"}, "arguments": {"level": (0, 1)}}, "the inputs are ['mask']; ['tile'] is allowed"),
            ({"inputs": {"tile": "mask"}}, "parameter level is not declared"),
            ({"inputs": {"tile": "mask"}, "arguments": {"levels": (0, 1)}}, "no parameter levels; count, level is allowed"),
        ]:
            with self.subTest(text), self.assertRaises(ValueError) as caught:
                operation(outputs=outputs, **given)(two)  # type: ignore[arg-type]
            self.assertIn(text, str(caught.exception))
        declared = operation(inputs={"tile": "mask"}, outputs=outputs, arguments={"level": (0, 1)})(two)
        self.assertIs(declared, two)
        two.__module__ = "__main__"
        with self.assertRaises(ValueError) as caught:
            operation(inputs={"tile": "mask"}, outputs=outputs, arguments={"level": (0, 1)})(two)
        self.assertIn("functions of __main__ are not allowed", str(caught.exception))
