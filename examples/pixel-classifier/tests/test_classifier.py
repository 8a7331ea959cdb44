"""Tests of the functions on drawn images. They need no model file.

Run them in the folder above: .venv/bin/python -W error -m unittest discover -s tests
"""

import inspect
import json
import math
import sys
import tomllib
import unittest
from importlib import import_module
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

FOLDER = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(FOLDER))

from agreement import compare  # noqa: E402
from features import features, names  # noqa: E402
from objects import clean, opening, select, split, threshold  # noqa: E402
from probability import probability  # noqa: E402

STAGES = [json.loads((FOLDER / name).read_text()) for name in ("segmentation.json", "comparison.json")]
TASKS = [task for stage in STAGES for task in stage["tasks"]]
MANIFEST = tomllib.loads((FOLDER / "pleach.toml").read_text())
SHAPE = (60, 80)


def read_only(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def mask_of(region):
    """Converts a region as pleach does: a mask is 0 or 255."""
    return read_only(region.astype(np.uint8) * 255)


def disc(row, column, radius, shape=SHAPE):
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    return (rows - row) ** 2 + (columns - column) ** 2 <= radius**2


def labeled(*regions):
    labels = np.zeros(SHAPE, dtype=np.uint32)
    for label, region in enumerate(regions, start=1):
        labels[region] = label
    return read_only(labels)


def drawn_tile(region):
    """An RGB tile: nuclei of violet on pink."""
    return read_only(np.where(region[..., None], (90, 60, 140), (235, 200, 225)).astype(np.uint8))


class Features(unittest.TestCase):
    def test_channels_have_names_and_nuclei_have_hematoxylin(self):
        sigmas = [1.0, 2.0]
        region = disc(30, 40, 12)
        found = features(drawn_tile(region), sigmas=sigmas)
        self.assertEqual((found.shape, found.dtype), ((*SHAPE, len(names(sigmas))), np.float32))
        self.assertTrue(np.isfinite(found).all())
        channel = dict(zip(names(sigmas), np.moveaxis(found, 2, 0)))
        for name in ("hematoxylin", "hematoxylin-1", "hematoxylin-2"):
            self.assertGreater(channel[name][30, 40], channel[name][0, 0] + 0.3)
        self.assertGreater(channel["edge-1"][30, 52], 10 * abs(channel["edge-1"][30, 40]))
        self.assertLess(channel["ridge-2"][30, 40], 1e-3)

    def test_a_view_of_reversed_channels_gives_equal_bits(self):
        tile = np.random.default_rng(1).integers(0, 256, (*SHAPE, 3), dtype=np.uint8)
        view = read_only(tile[..., ::-1])[..., ::-1]
        self.assertEqual(features(tile, sigmas=[1.0]).tobytes(), features(view, sigmas=[1.0]).tobytes())


class Probability(unittest.TestCase):
    def test_separable_pixels_have_a_probability_of_0_or_1(self):
        region = disc(30, 40, 12)
        channels = read_only(np.stack([region, ~region], axis=2).astype(np.float32))
        model = RandomForestClassifier(5, random_state=1).fit(channels.reshape(-1, 2), region.ravel().astype(int))
        found = probability(model, channels)
        self.assertEqual(found.dtype, np.float32)
        np.testing.assert_array_equal(found, region)


class Objects(unittest.TestCase):
    def test_regions_reach_the_level_and_extend_to_the_margin(self):
        heights = np.zeros((5, 20), dtype=np.float32)
        heights[2, 2:6], heights[2, 3], heights[2, 10:14] = 0.5, 0.7, 0.5
        counts = {
            (level, margin): threshold(read_only(heights), smoothing=0.0, level=level, margin=margin).sum()
            for level, margin in ((0.6, 0.0), (0.6, 0.2), (0.4, 0.0))
        }
        self.assertEqual(counts, {(0.6, 0.0): 1, (0.6, 0.2): 4, (0.4, 0.0): 8})

    def test_smoothing_removes_a_single_pixel(self):
        heights = np.zeros(SHAPE, dtype=np.float32)
        heights[30, 40] = 1.0
        counts = [threshold(heights, smoothing=sigma, level=0.5, margin=0.0).sum() for sigma in (0.0, 2.0)]
        self.assertEqual(counts, [1, 0])

    def test_opening_removes_lines_and_keeps_discs(self):
        region = disc(30, 30, 10)
        line = np.zeros(SHAPE, dtype=bool)
        line[5, 5:60] = True
        opened = opening(mask_of(region | line), radius=2.0)
        self.assertFalse(opened[5].any())
        self.assertLess((opened ^ region).sum(), 12)
        np.testing.assert_array_equal(opening(mask_of(region | line), radius=0.0), region | line)

    def test_small_holes_are_filled_and_small_components_removed(self):
        region = disc(30, 30, 12) & ~disc(30, 30, 2)  # the hole has 13 px
        small = disc(10, 70, 2)
        mask = mask_of(region | small)
        self.assertTrue(clean(mask, max_hole_area=13, min_area=14)[30, 30])
        self.assertFalse(clean(mask, max_hole_area=12, min_area=14)[30, 30])
        kept = [clean(mask, max_hole_area=0, min_area=area)[10, 70] for area in (13, 14)]
        self.assertEqual(kept, [True, False])

    def test_touching_discs_are_split_by_the_depth_of_their_neck(self):
        mask = mask_of(disc(30, 31, 12) | disc(30, 49, 12))  # the neck is 4 lower than the centers
        numbers = [split(mask, distance_smoothing=0.0, seed_depth=depth).max() for depth in (2.0, 5.0)]
        self.assertEqual(numbers, [2, 1])

    def test_nuclei_outside_of_a_limit_are_removed(self):
        labels = labeled(disc(20, 20, 8), disc(40, 60, 10))
        heights = np.where(labels == 1, np.float32(0.9), np.float32(0.5))
        limits = {"min_nucleus_area": 0, "min_confidence": 0.0, "min_solidity": 0.0}

        def kept(**changes):
            return np.unique(select(labels, heights, **limits | changes)).tolist()

        self.assertEqual(kept(), [0, 1, 2])
        self.assertEqual(kept(min_nucleus_area=250), [0, 2])
        self.assertEqual(kept(min_confidence=0.8), [0, 1])
        self.assertEqual(kept(min_solidity=0.99), [0])


class Agreement(unittest.TestCase):
    def test_equal_label_maps_agree_whatever_their_numbers(self):
        first, second = disc(20, 20, 8), disc(40, 60, 10)
        found = compare(labeled(first, second), labeled(second, first), min_overlap=0.5)
        pixels = int(first.sum() + second.sum())
        expected = {"f1": 1.0, "dice": 1.0, "precision": 1.0, "recall": 1.0, "count": 2.0, "mean-area": pixels / 2}
        self.assertEqual(found, expected)

    def test_one_of_two_nuclei_is_found_and_one_is_moved(self):
        found = compare(
            labeled(disc(20, 20, 8), disc(40, 60, 8), disc(50, 20, 3)),
            labeled(disc(20, 20, 8), disc(40, 70, 8)),
            min_overlap=0.5,
        )
        self.assertEqual((found["precision"], found["recall"], found["f1"]), (1 / 3, 1 / 2, 2 / 5))

    def test_empty_label_maps_agree(self):
        empty, disc_alone = labeled(), labeled(disc(20, 20, 8))
        self.assertEqual(compare(empty, empty, min_overlap=0.5)["f1"], 1.0)
        for pair in ((empty, disc_alone), (disc_alone, empty)):
            found = compare(*pair, min_overlap=0.5)
            self.assertEqual((found["f1"], found["dice"]), (0.0, 0.0))
            self.assertTrue(all(math.isfinite(value) for value in found.values()))


class Descriptors(unittest.TestCase):
    def test_manifest_names_the_arguments_of_each_function(self):
        for operation in MANIFEST["operation"]:
            module, name = operation["name"].removeprefix("python:").split(".")
            parameters = inspect.signature(getattr(import_module(module), name)).parameters.values()
            keywords = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
            arguments = [argument["name"] for argument in operation.get("arguments", [])]
            self.assertEqual(keywords, arguments + list(operation.get("constants", {})), name)
            positional = len(operation["inputs"]) + ("setup" in operation)
            self.assertEqual(len(parameters) - len(keywords), positional, name)

    def test_ranges_are_within_those_of_the_manifest(self):
        operations = {operation["name"]: operation for operation in MANIFEST["operation"]}
        for task in TASKS:
            accepted = {each["name"]: each for each in operations[task["operation"]].get("arguments", [])}
            for parameter in task.get("parameters", []):
                argument = accepted[parameter.get("argument", parameter["name"])]
                low, high = parameter["range"]
                self.assertTrue(argument["low"] <= low <= parameter["default"] <= high <= argument["high"])

    def test_metrics_are_the_columns_of_the_table(self):
        response = json.loads((FOLDER / "workflow.json").read_text())["response"]
        table = compare(labeled(), labeled(), min_overlap=0.5)
        self.assertEqual([metric["metric"] for metric in response["metrics"]], list(table))


if __name__ == "__main__":
    unittest.main()
