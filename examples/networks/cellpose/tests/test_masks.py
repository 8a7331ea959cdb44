"""Tests of masks.py on drawn flows, without weights.

Run them in the folder above: .venv/bin/python -m unittest discover -s tests
"""

import sys
import unittest
from pathlib import Path

import numpy as np
from cellpose import dynamics

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from counts import count  # noqa: E402
from masks import masks  # noqa: E402

RADII = (4, 10, 14)
LIMITS = {"flow_threshold": 0.4, "cellprob_threshold": 0.0, "min_size": 15}


def drawn():
    """Returns the label map of three discs, with the flows and the cell probability of a perfect network."""
    rows, columns = np.ogrid[:96, :128]
    labels = np.zeros((96, 128), dtype=np.uint16)
    for label, radius in enumerate(RADII, start=1):
        labels[(rows - 48) ** 2 + (columns - 32 * label) ** 2 <= radius**2] = label
    # The flows of training data have a length of 1, those of the network of 5.
    flows = 5 * dynamics.masks_to_flows_gpu(labels)[0]
    cellprob = np.where(labels > 0, 4.0, -4.0).astype(np.float32)
    cellprob[labels == 2] = 1.0
    regions = np.ascontiguousarray(np.moveaxis(flows, 0, 2), dtype=np.float32), cellprob
    for region in regions:
        region.flags.writeable = False
    return labels, *regions


class Masks(unittest.TestCase):
    def test_drawn_cells_are_found(self):
        labels, flows, cellprob = drawn()
        found = masks(flows, cellprob, **LIMITS)
        self.assertEqual(found.dtype, np.uint32)
        self.assertEqual(count(found)["count"], 3.0)
        self.assertGreater(((found > 0) == (labels > 0)).mean(), 0.995)

    def test_each_parameter_removes_cells(self):
        labels, flows, cellprob = drawn()
        area = int((labels == 1).sum())
        changes = ({"min_size": area + 20}, {"cellprob_threshold": 2.0}, {"cellprob_threshold": 5.0})
        numbers = [count(masks(flows, cellprob, **LIMITS | change))["count"] for change in changes]
        self.assertEqual(numbers, [2.0, 2.0, 0.0])

    def test_cells_of_bad_flows_are_removed(self):
        labels, flows, cellprob = drawn()
        bad = flows.copy()
        bad[labels == 3] *= np.float32(0.2)
        kept = [count(masks(bad, cellprob, **LIMITS | {"flow_threshold": limit}))["count"] for limit in (0.0, 0.4)]
        self.assertEqual(kept, [3.0, 2.0])

    def test_equal_inputs_give_equal_bits(self):
        _, *regions = drawn()
        self.assertEqual(masks(*regions, **LIMITS).tobytes(), masks(*regions, **LIMITS).tobytes())


if __name__ == "__main__":
    unittest.main()
