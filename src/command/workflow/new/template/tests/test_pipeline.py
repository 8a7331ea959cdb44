import pathlib
import sys
import unittest

import numpy as np

sys.path.append(str(pathlib.Path(__file__).parent.parent))
import density
import measure


class Pipeline(unittest.TestCase):
    def test_white_has_no_density(self):
        white = np.full((4, 6, 3), 255, np.uint8)
        self.assertEqual(density.optical_density(white).max(), 0)

    def test_smoothing_takes_the_mean_of_a_square(self):
        image = np.zeros((5, 5), np.float32)
        image[2, 2] = 9
        np.testing.assert_allclose(density.smooth(image, 1)[1:4, 1:4], 1, rtol=1e-6)
        np.testing.assert_array_equal(density.smooth(image, 0), image)

    def test_features_measure_the_mask(self):
        image = np.array([[0.5, 0.25], [0.0, 0.0]], np.float32)
        features = measure.measure(measure.threshold(image, 0.2), image)
        self.assertEqual(features, {"area-fraction": 0.5, "mean-density": 0.375})
        self.assertEqual(measure.measure(image > 1, image), {"area-fraction": 0.0, "mean-density": 0.0})


if __name__ == "__main__":
    unittest.main()
