"""Optical density of an H&E tile."""

import numpy as np


def optical_density(tile):
    """Returns the optical density of each pixel, the mean of red, green and blue. White is 0."""
    # At least 1 of 255, since the logarithm of 0 is infinite.
    transmission = np.maximum(tile, 1).astype(np.float32) / np.float32(255)
    return -np.log10(transmission).mean(axis=2)


def smooth(density, radius):
    """Returns the mean over squares of 2 * radius + 1 pixels."""
    side = 2 * radius + 1
    padded = np.pad(density.astype(np.float64), radius + 1, mode="edge")
    sums = padded.cumsum(axis=0).cumsum(axis=1)
    rows, columns = density.shape
    squares = (
        sums[side : side + rows, side : side + columns]
        - sums[:rows, side : side + columns]
        - sums[side : side + rows, :columns]
        + sums[:rows, :columns]
    )
    return (squares / side**2).astype(np.float32)
