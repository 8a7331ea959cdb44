"""Tests of suppression.py on drawn distances, without weights and without TensorFlow.

Run them in the folder above: .venv/bin/python -m unittest discover -s tests
"""

import sys
import unittest
from pathlib import Path

import numpy as np
from stardist.geometry import star_dist

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from counts import count  # noqa: E402
from suppression import suppress  # noqa: E402

TILE = np.zeros((96, 128, 3), dtype=np.uint8)
LIMITS = {"prob_thresh": 0.7, "nms_thresh": 0.3, "grid": 2}


def drawn():
    """Returns the label map of three discs, with the probability and the distances of a perfect network on a grid of 2 px."""
    rows, columns = np.ogrid[:96, :128]
    labels = np.zeros((96, 128), dtype=np.uint16)
    probability = np.zeros((96, 128), dtype=np.float32)
    for label, (radius, peak) in enumerate(((6, 0.95), (10, 0.75), (14, 0.9)), start=1):
        away = np.hypot(rows - 48, columns - 32 * label)
        labels[away <= radius] = label
        probability = np.maximum(probability, np.float32(peak) * np.clip(1.2 - away / radius, 0, 1).astype(np.float32))
    regions = np.ascontiguousarray(probability[::2, ::2]), star_dist(labels, n_rays=32, grid=(2, 2)).astype(np.float32)
    for region in regions:
        region.flags.writeable = False
    return labels, *regions


class Suppression(unittest.TestCase):
    def test_drawn_nuclei_are_found(self):
        labels, *regions = drawn()
        found = suppress(TILE, *regions, **LIMITS)
        self.assertEqual((found.shape, found.dtype), (labels.shape, np.uint32))
        self.assertEqual(count(found)["count"], 3.0)
        self.assertGreater(((found > 0) == (labels > 0)).mean(), 0.99)

    def test_threshold_of_the_probability_decides(self):
        _, *regions = drawn()
        numbers = [count(suppress(TILE, *regions, **LIMITS | {"prob_thresh": limit}))["count"] for limit in (0.7, 0.8, 0.99)]
        self.assertEqual(numbers, [3.0, 2.0, 0.0])

    def test_allowed_overlap_keeps_more_candidates(self):
        _, *regions = drawn()
        numbers = [count(suppress(TILE, *regions, **LIMITS | {"nms_thresh": limit}))["count"] for limit in (0.3, 0.99)]
        self.assertEqual(numbers[0], 3.0)
        self.assertGreater(numbers[1], 3.0)

    def test_equal_inputs_give_equal_bits(self):
        _, *regions = drawn()
        self.assertEqual(suppress(TILE, *regions, **LIMITS).tobytes(), suppress(TILE, *regions, **LIMITS).tobytes())


if __name__ == "__main__":
    unittest.main()
