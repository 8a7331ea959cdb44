"""Stained area of a tile."""

import numpy as np


def threshold(density, level):
    """Returns the mask of the pixels above a density."""
    return density > level


def measure(mask, density):
    """Returns the response: a table of numbers by name."""
    stained = mask > 0
    mean = float(density[stained].mean(dtype=np.float64)) if stained.any() else 0.0
    return {"area-fraction": float(stained.mean()), "mean-density": mean}
