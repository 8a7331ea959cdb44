"""Tests of nuclei.py on drawn images.

Run them in the folder above: .venv/bin/python -W error -m unittest discover tests
"""

import inspect
import json
import math
import sys
import unittest
import warnings
from pathlib import Path

import numpy as np
from skimage import color

FOLDER = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(FOLDER))

import nuclei  # noqa: E402

TASKS = json.loads((FOLDER / "segmentation.json").read_text())["tasks"]
CHOICES = {"method": {1: "otsu", 2: "li", 3: "triangle"}, "border": {1: "keep", 2: "exclude"}}
CONSTANTS = {"threshold": {"floor": 0.2}, "features": {"pixel_size": 0.25}}


def arguments(task, **changes):
    """Keyword arguments of a task: the defaults of segmentation.json, its constants, and `changes`."""
    described = next(described for described in TASKS if described["task"] == task)
    found = {parameter["name"]: parameter["default"] for parameter in described.get("parameters", [])}
    found = {name: CHOICES[name][value] if name in CHOICES else value for name, value in found.items()}
    found |= CONSTANTS.get(task, {})
    assert changes.keys() <= found.keys(), changes
    return found | changes


def read_only(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def mask_of(region):
    """Converts a region as pleach does: a mask is 0 or 255."""
    return read_only(region.astype(np.uint8) * 255)


def threshold(hematoxylin, **changes):
    return nuclei.threshold(read_only(np.float32(hematoxylin)), **arguments("threshold", **changes))


def clean(region, **changes):
    return nuclei.clean(mask_of(region), **arguments("clean", **changes))


def distance(region, **changes):
    return nuclei.distance(mask_of(region), **arguments("distance", **changes))


def watershed(region, smoothing=0.0, **changes):
    heights = read_only(distance(region, distance_smoothing=smoothing))
    return nuclei.watershed(heights, mask_of(region), **arguments("watershed", **changes))


def features(labels, hematoxylin=None, **changes):
    if hematoxylin is None:
        hematoxylin = np.ones(labels.shape)
    inputs = read_only(labels.astype(np.uint32)), read_only(np.float32(hematoxylin))
    return nuclei.features(*inputs, **arguments("features", **changes))


def run(tile):
    """Runs the six tasks at their defaults and returns all regions."""
    hematoxylin = read_only(nuclei.deconvolve(tile))
    mask = mask_of(threshold(hematoxylin))
    cleaned = mask_of(nuclei.clean(mask, **arguments("clean")))
    heights = read_only(nuclei.distance(cleaned, **arguments("distance")))
    labels = read_only(nuclei.watershed(heights, cleaned, **arguments("watershed")).astype(np.uint32))
    table = nuclei.features(labels, hematoxylin, **arguments("features"))
    return hematoxylin, mask, cleaned, heights, labels, table


def disc(shape, row, column, radius):
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    return (rows - row) ** 2 + (columns - column) ** 2 <= radius**2


def box(shape, top, left, height, width):
    region = np.zeros(shape, dtype=bool)
    region[top : top + height, left : left + width] = True
    return region


def drawn_tile(region):
    """An RGB tile: nuclei of violet on pink."""
    return read_only(np.where(region[..., None], (90, 60, 140), (235, 200, 225)).astype(np.uint8))


def number(region):
    """Number of 8-connected components."""
    return nuclei._components(region, connectivity=2)[0].max()


SIX_DISCS = [(20, 20, 8), (20, 60, 10), (20, 100, 12), (70, 20, 9), (70, 60, 11), (70, 100, 7)]


class Deconvolve(unittest.TestCase):
    def test_equals_rgb2hed_in_units_of_optical_density(self):
        tile = np.random.default_rng(1).integers(1, 256, (40, 30, 3), dtype=np.uint8)
        expected = color.rgb2hed(tile)[..., 0] * -math.log(1e-6)
        np.testing.assert_allclose(nuclei.deconvolve(read_only(tile)), expected, atol=1e-5)

    def test_pixel_of_pure_hematoxylin_has_its_density(self):
        for density in (0.5, 1.0, 2.0):
            pixel = np.rint(255 * np.exp(-density * color.rgb_from_hed[0])).astype(np.uint8)
            found = nuclei.deconvolve(pixel.reshape(1, 1, 3))
            self.assertAlmostEqual(found.item(), density, delta=0.02)

    def test_white_and_eosin_have_no_hematoxylin(self):
        eosin = np.rint(255 * np.exp(-color.rgb_from_hed[1])).astype(np.uint8)
        tile = np.stack([np.full(3, 255, dtype=np.uint8), eosin]).reshape(1, 2, 3)
        np.testing.assert_allclose(nuclei.deconvolve(tile), 0, atol=0.02)

    def test_black_is_finite_and_channels_are_in_the_order_rgb(self):
        self.assertTrue(np.isfinite(nuclei.deconvolve(np.zeros((2, 2, 3), dtype=np.uint8))).all())
        tile = drawn_tile(np.ones((1, 1), dtype=bool))
        self.assertNotAlmostEqual(nuclei.deconvolve(tile).item(), nuclei.deconvolve(tile[..., ::-1]).item(), delta=0.1)


class Threshold(unittest.TestCase):
    ramp = np.tile(np.linspace(0, 1, 1000), (10, 1))

    def test_disc_is_found_to_the_pixel(self):
        region = disc((50, 60), 25, 30, 10)
        np.testing.assert_array_equal(threshold(0.3 + region, smoothing=0.0, factor=1.0), region)

    def test_smoothing_removes_a_single_pixel(self):
        region = disc((50, 60), 25, 30, 10)
        region[5, 5] = True
        self.assertTrue(threshold(region, smoothing=0.0)[5, 5])
        found = threshold(region, smoothing=2.0)
        self.assertFalse(found[5, 5])
        self.assertTrue(found[25, 30])

    def test_methods_have_their_thresholds_on_a_ramp(self):
        # Otsu divides equal densities at 1/2. Li's fixed point is t = 1/2 / ln((1 + t) / t).
        for method, level in (("otsu", 0.5), ("li", 0.398)):
            share = threshold(self.ramp, smoothing=0.0, method=method, factor=1.0).mean()
            self.assertAlmostEqual(share, 1 - level, delta=0.01, msg=method)

    def test_triangle_is_at_the_foot_of_the_peak(self):
        image = np.concatenate([np.zeros((90, 1000)), self.ramp])
        changes = {"smoothing": 0.0, "factor": 1.0, "floor": 0.0}
        self.assertAlmostEqual(threshold(image, method="triangle", **changes).mean(), 0.1, delta=0.002)
        self.assertLess(threshold(image, method="otsu", **changes).mean(), 0.08)

    def test_factor_and_floor_set_the_level(self):
        cases = (({"factor": 0.8}, 0.4), ({"factor": 1.2}, 0.6), ({"floor": 0.9}, 0.9), ({"floor": 2.0}, 1.0))
        for changes, level in cases:
            share = threshold(self.ramp, **{"smoothing": 0.0, "factor": 1.0} | changes).mean()
            self.assertAlmostEqual(share, 1 - level, delta=0.005, msg=changes)

    def test_constant_image_has_no_nuclei(self):
        for value in (0.0, 1.0):
            for method in CHOICES["method"].values():
                self.assertFalse(threshold(np.full((9, 9), value), method=method, floor=0.0).any())


class Clean(unittest.TestCase):
    shape = (60, 60)
    off = {"opening_radius": 0.0, "max_hole_area": 0, "min_area": 0}

    def test_nothing_changes_without_opening_and_limits(self):
        region = np.random.default_rng(2).random(self.shape) < 0.5
        np.testing.assert_array_equal(clean(region, **self.off), region)

    def test_opening_removes_a_bar_thinner_than_the_disc(self):
        bar = box(self.shape, 20, 0, 3, 60)  # no pixel is farther than 2 from background
        np.testing.assert_array_equal(clean(bar, **self.off | {"opening_radius": 1.0}), bar)
        self.assertFalse(clean(bar, **self.off | {"opening_radius": 2.0}).any())

    def test_opening_cuts_a_bridge_and_keeps_the_discs(self):
        discs = disc(self.shape, 30, 15, 11) | disc(self.shape, 30, 45, 11)
        bridged = discs | box(self.shape, 29, 15, 3, 30)
        self.assertEqual(number(clean(bridged, **self.off)), 1)
        opened = clean(bridged, **self.off | {"opening_radius": 2.0})
        self.assertEqual(number(opened), 2)
        self.assertLess((opened ^ discs).sum(), 30)
        self.assertFalse((opened & ~bridged).any())

    def test_opening_keeps_nuclei_at_the_border_of_the_tile(self):
        half = box(self.shape, 0, 0, 60, 20)
        np.testing.assert_array_equal(clean(half, **self.off | {"opening_radius": 4.0}), half)

    def test_hole_is_filled_up_to_its_area(self):
        square = box(self.shape, 20, 20, 20, 20)
        ring = square & ~box(self.shape, 25, 25, 3, 3)
        np.testing.assert_array_equal(clean(ring, **self.off | {"max_hole_area": 8}), ring)
        np.testing.assert_array_equal(clean(ring, **self.off | {"max_hole_area": 9}), square)

    def test_background_at_the_border_is_no_hole(self):
        corner = ~box(self.shape, 0, 0, 3, 3)
        np.testing.assert_array_equal(clean(corner, **self.off | {"max_hole_area": 10**6}), corner)
        self.assertFalse(clean(np.zeros(self.shape), **self.off | {"max_hole_area": 10**6}).any())

    def test_hole_with_a_corner_at_the_background_is_a_hole(self):
        square = box(self.shape, 20, 20, 20, 20)
        square[20, 20] = False
        pierced = square.copy()
        pierced[21, 21] = False
        np.testing.assert_array_equal(clean(pierced, **self.off | {"max_hole_area": 1}), square)

    def test_components_below_the_area_are_removed(self):
        small, large = box(self.shape, 5, 5, 5, 5), box(self.shape, 30, 30, 6, 6)
        areas = {limit: clean(small | large, **self.off | {"min_area": limit}).sum() for limit in (25, 26, 36, 37)}
        self.assertEqual(areas, {25: 61, 26: 36, 36: 36, 37: 0})

    def test_components_are_connected_by_corners(self):
        pair = box(self.shape, 5, 5, 5, 5) | box(self.shape, 10, 10, 5, 5)
        self.assertEqual(clean(pair, **self.off | {"min_area": 50}).sum(), 50)


class Distance(unittest.TestCase):
    def test_square_has_exact_distances(self):
        found = distance(box((15, 15), 4, 4, 7, 7), distance_smoothing=0.0)
        self.assertEqual(found[7].tolist(), [0, 0, 0, 0, 1, 2, 3, 4, 3, 2, 1, 0, 0, 0, 0])

    def test_diagonal_neighbor_has_the_euclidean_distance(self):
        region = np.ones((9, 9), dtype=bool)
        region[4, 4] = False
        self.assertEqual(distance(region, distance_smoothing=0.0)[3, 3], np.float32(math.sqrt(2)))

    def test_surroundings_of_the_tile_are_background(self):
        found = distance(np.ones((5, 5), dtype=bool), distance_smoothing=0.0)
        self.assertEqual(found[2].tolist(), [1, 2, 3, 2, 1])

    def test_smoothing_lowers_the_peak_and_stays_inside(self):
        region = disc((40, 40), 20, 20, 10)
        rough, smooth = (distance(region, distance_smoothing=sigma) for sigma in (0.0, 2.0))
        self.assertLess(smooth.max(), rough.max() - 0.5)
        for found in (rough, smooth):
            np.testing.assert_array_equal(found > 0, region)


class Watershed(unittest.TestCase):
    shape = (60, 80)
    touching = disc(shape, 30, 31, 12) | disc(shape, 30, 49, 12)  # 18 apart: the neck is 4 lower than the centers

    def test_touching_discs_are_split_in_halves(self):
        labels = watershed(self.touching, seed_depth=2.0)
        np.testing.assert_array_equal(labels > 0, self.touching)
        self.assertEqual(labels.max(), 2)
        self.assertTrue((labels[:, :40] != labels[30, 49]).all())
        self.assertTrue((labels[:, 41:] != labels[30, 31]).all())

    def test_seed_depth_decides_on_the_split(self):
        numbers = {depth: watershed(self.touching, seed_depth=depth).max() for depth in (0.5, 3.0, 5.0, 100.0)}
        self.assertEqual(numbers, {0.5: 2, 3.0: 2, 5.0: 1, 100.0: 1})

    def test_separate_components_keep_a_seed_each(self):
        region = self.touching.copy()
        region[5, 5] = region[0, 70] = True
        pixels = np.zeros(self.shape, dtype=bool)
        pixels[30, 20] = pixels[30, 60] = True
        for found, sigma, count in ((region, 3.0, 3), (pixels, 20.0, 2)):
            labels = watershed(found, smoothing=sigma, seed_depth=100.0)
            self.assertEqual(labels.max(), count)
            np.testing.assert_array_equal(labels > 0, found)

    def test_connectivity_decides_on_corners(self):
        pair = box(self.shape, 5, 5, 7, 7) | box(self.shape, 12, 12, 7, 7)
        numbers = [watershed(pair, seed_depth=100.0, connectivity=connectivity).max() for connectivity in (1, 2)]
        self.assertEqual(numbers, [2, 1])

    def test_connectivity_decides_on_the_path_between_maxima(self):
        # Heights are 8.06 in the discs, 2.24 on the diagonal between them, and 1.41 beside it, where 4-connected paths
        # pass.
        rows, columns = np.indices(self.shape)
        bar = (abs(rows - columns) <= 2) & (rows >= 15) & (rows < 45)
        region = disc(self.shape, 15, 15, 8) | disc(self.shape, 45, 45, 8) | bar
        cases = ((0.5, 2), (6.2, 2), (6.2, 1), (7.0, 1))
        numbers = [watershed(region, seed_depth=depth, connectivity=paths).max() for depth, paths in cases]
        self.assertEqual(numbers, [2, 1, 2, 1])

    def test_compactness_moves_the_boundary_to_the_middle_of_the_seeds(self):
        # Seeds are at columns 20 and 47, the neck is between columns 38 and 39.
        region = disc(self.shape, 30, 20, 19) | disc(self.shape, 30, 47, 10)
        widths = {}
        for compactness in (0.0, 0.01, 0.1, 10.0):
            labels = watershed(region, seed_depth=1.0, compactness=compactness)
            widths[compactness] = (labels[30] == labels[30, 20]).sum()
        self.assertEqual(widths, {0.0: 38, 0.01: 36, 0.1: 34, 10.0: 33})


class Features(unittest.TestCase):
    shape = (100, 120)

    def labels(self, *regions):
        labels = np.zeros(self.shape, dtype=np.uint32)
        for label, region in enumerate(regions, start=1):
            labels[region] = label
        return labels

    def test_discs_are_counted_and_measured(self):
        regions = [disc(self.shape, row, column, 10) for row, column in ((20, 20), (50, 60), (80, 100))]
        found = features(self.labels(*regions), sum((1.0 + i) * region for i, region in enumerate(regions)))
        area = regions[0].sum()
        self.assertEqual(found["count"], 3.0)
        self.assertEqual(found["mean-area"], area)
        self.assertEqual(found["area-fraction"], 3 * area / 12000)
        self.assertAlmostEqual(found["density"], 3 / (12000 * 0.25**2 * 1e-6))
        self.assertEqual(found["mean-intensity"], 2.0)
        self.assertLess(found["mean-eccentricity"], 1e-6)
        self.assertAlmostEqual(found["mean-solidity"], 0.93, delta=0.01)

    def test_rectangle_has_its_eccentricity_and_solidity(self):
        found = features(self.labels(box(self.shape, 10, 10, 10, 40)))
        self.assertAlmostEqual(found["mean-eccentricity"], math.sqrt(1 - (10**2 - 1) / (40**2 - 1)), places=9)
        self.assertEqual(found["mean-solidity"], 1.0)

    def test_area_is_a_limit(self):
        labels = self.labels(box(self.shape, 10, 10, 10, 10), box(self.shape, 40, 40, 10, 11))
        counts = {limit: features(labels, min_nucleus_area=limit)["count"] for limit in (100, 101, 110, 111)}
        self.assertEqual(counts, {100: 2.0, 101: 1.0, 110: 1.0, 111: 0.0})

    def test_eccentricity_is_a_limit(self):
        labels = self.labels(disc(self.shape, 30, 30, 10), box(self.shape, 60, 10, 10, 40))  # 0 and 0.969
        counts = {limit: features(labels, max_eccentricity=limit)["count"] for limit in (0.9, 0.96, 0.97, 1.0)}
        self.assertEqual(counts, {0.9: 1.0, 0.96: 1.0, 0.97: 2.0, 1.0: 2.0})

    def test_solidity_is_a_limit(self):
        # An L of two arms of 10 x 30 px: 500 px of a convex hull of about 700 px.
        corner = box(self.shape, 10, 10, 30, 10) | box(self.shape, 30, 10, 10, 30)
        counts = {limit: features(self.labels(corner), min_solidity=limit)["count"] for limit in (0.6, 0.7, 0.75, 0.9)}
        self.assertEqual(counts, {0.6: 1.0, 0.7: 1.0, 0.75: 0.0, 0.9: 0.0})

    def test_nuclei_at_the_border_are_kept_or_excluded(self):
        corners = (0, 10), (1, 50), (80, 100)  # the first touches the top, the last bottom and right
        labels = self.labels(*(box(self.shape, top, left, 20, 20) for top, left in corners))
        self.assertEqual(features(labels, border="keep")["count"], 3.0)
        self.assertEqual(features(labels, border="exclude")["count"], 1.0)

    def test_density_depends_on_the_size_of_a_pixel(self):
        labels = self.labels(disc(self.shape, 30, 30, 10))
        self.assertAlmostEqual(features(labels)["density"] / features(labels, pixel_size=0.5)["density"], 4.0)

    def test_no_nuclei_give_zeros(self):
        self.assertEqual(set(features(self.labels()).values()), {0.0})


class Pipeline(unittest.TestCase):
    shape = (100, 120)

    def test_drawn_nuclei_are_counted(self):
        region = np.any([disc(self.shape, *each) for each in SIX_DISCS], axis=0)
        *_, labels, table = run(drawn_tile(region))
        self.assertEqual(table["count"], 6.0)
        self.assertAlmostEqual(table["mean-area"], region.sum() / 6, delta=10)
        self.assertLess(((labels > 0) ^ region).mean(), 0.01)

    def test_equal_inputs_give_equal_bits(self):
        noise = np.random.default_rng(3).integers(-20, 20, (*self.shape, 3))
        region = np.any([disc(self.shape, *each) for each in SIX_DISCS], axis=0)
        tile = read_only((drawn_tile(region).astype(int) + noise).clip(0, 255).astype(np.uint8))
        first, again, view = run(tile), run(tile.copy()), run(read_only(tile[..., ::-1])[..., ::-1])
        for found in (again, view):
            for expected, region in zip(first[:-1], found[:-1]):
                self.assertEqual(expected.tobytes(), region.tobytes())
            self.assertEqual(first[-1], found[-1])

    def test_any_tile_gives_finite_numbers(self):
        rng = np.random.default_rng(4)
        shapes = [(1, 1), (1, 2), (2, 1), (1, 40), (40, 1), (2, 2), (3, 3), (40, 30)]
        tiles = [np.full((*shape, 3), value, dtype=np.uint8) for shape in shapes for value in (0, 1, 128, 255)]
        tiles += [rng.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in shapes]
        tiles += [rng.choice(np.array([0, 255], dtype=np.uint8), (*shape, 3)) for shape in shapes]
        for tile in tiles:
            with self.subTest(shape=tile.shape, first=tile[0, 0]):
                self.check_table(run(read_only(tile))[-1])

    def test_any_mask_gives_finite_numbers(self):
        rng = np.random.default_rng(5)
        off = {"opening_radius": 0.0, "max_hole_area": 0, "min_area": 0}
        limits = {"min_nucleus_area": 0, "max_eccentricity": 1.0, "min_solidity": 0.0}
        for shape in [(1, 1), (1, 2), (1, 30), (30, 1), (2, 2), (25, 30)]:
            masks = [np.zeros(shape), np.ones(shape), rng.random(shape) < 0.1, rng.random(shape) < 0.6]
            for region in masks:
                for changes in ({}, off, off | {"opening_radius": 50.0}, off | {"max_hole_area": 10**6}):
                    with self.subTest(shape=shape, share=region.mean(), changes=changes):
                        cleaned = clean(region, **changes)
                        for depth, compactness in ((0.0, 0.0), (1.0, 0.1), (100.0, 100.0)):
                            labels = watershed(cleaned, seed_depth=depth, compactness=compactness)
                            np.testing.assert_array_equal(labels > 0, cleaned)
                            for border in CHOICES["border"].values():
                                self.check_table(features(labels, border=border))
                                self.check_table(features(labels, border=border, **limits))

    def test_full_mask_is_one_nucleus_and_an_empty_one_none(self):
        for shape in ((1, 1), (30, 30)):
            for share, count in ((np.zeros, 0.0), (np.ones, 1.0)):
                region = clean(share(shape), opening_radius=4.0, min_area=0)
                self.assertEqual(region.all(), count == 1.0)
                self.assertEqual(features(watershed(region), min_nucleus_area=1)["count"], count)

    def check_table(self, table):
        for name, value in table.items():
            self.assertIs(type(value), float, name)
            self.assertTrue(math.isfinite(value), name)


class Descriptors(unittest.TestCase):
    def setUp(self):
        try:
            import tomllib
        except ImportError:
            self.skipTest("tomllib needs Python 3.11")
        manifest = tomllib.loads((FOLDER / "pleach.toml").read_text())
        self.operations = {operation["name"]: operation for operation in manifest["operation"]}

    def test_manifest_names_the_arguments_of_each_function(self):
        for name, operation in self.operations.items():
            function = getattr(nuclei, name.removeprefix("python:nuclei."))
            parameters = inspect.signature(function).parameters.values()
            keywords = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
            names = [argument["name"] for argument in operation.get("arguments", [])]
            self.assertEqual(keywords, names + list(operation.get("constants", {})), name)
            self.assertEqual(len(parameters) - len(keywords), len(operation["inputs"]), name)

    def test_constants_and_choices_are_those_of_the_tests(self):
        for name, operation in self.operations.items():
            task = name.removeprefix("python:nuclei.")
            self.assertEqual(operation.get("constants", {}), CONSTANTS.get(task, {}))
            for argument in operation.get("arguments", []):
                if "choices" in argument:
                    choices = {int(number): text for number, text in argument["choices"].items()}
                    self.assertEqual(choices, CHOICES[argument["name"]])

    def test_tasks_use_the_operations_of_the_manifest(self):
        for task in TASKS:
            operation = self.operations[task["operation"]]
            self.assertEqual(task["version"], operation["version"])
            self.assertEqual(len(task["reads"]), len(operation["inputs"]))
            self.assertEqual(len(task["writes"]), len(operation["outputs"]))
            names = [parameter["name"] for parameter in task.get("parameters", [])]
            self.assertEqual(names, [argument["name"] for argument in operation.get("arguments", [])])

    def test_ranges_are_within_those_of_the_manifest(self):
        accepted = {a["name"]: a for operation in self.operations.values() for a in operation.get("arguments", [])}
        for parameter in (parameter for task in TASKS for parameter in task.get("parameters", [])):
            argument = accepted[parameter["name"]]
            values = parameter.get("values") or parameter["range"]
            if "choices" in argument:
                self.assertEqual([str(value) for value in values], list(argument["choices"]))
            elif "values" in argument:
                self.assertEqual(values, argument["values"])
            else:
                self.assertTrue(argument["low"] <= values[0] <= parameter["default"] <= values[1] <= argument["high"])
                steps = (values[1] - values[0]) / parameter["step"]
                self.assertAlmostEqual(steps, round(steps))

    def test_metrics_are_the_columns_of_the_table(self):
        response = json.loads((FOLDER / "workflow.json").read_text())["response"]
        table = features(np.zeros((9, 9), dtype=np.uint32))
        self.assertEqual([metric["metric"] for metric in response["metrics"]], list(table))


def setUpModule():
    warnings.simplefilter("error")


if __name__ == "__main__":
    unittest.main()
