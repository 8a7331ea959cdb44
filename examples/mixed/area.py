"""Minimum area of candidates, by scipy."""

import numpy as np
from scipy import ndimage


def minimum_area(mask, minSize):
    """Keeps the 8-connected components of a mask with at least an area."""
    labels, count = ndimage.label(mask, structure=np.ones((3, 3)))
    kept = np.bincount(labels.ravel(), minlength=count + 1) >= minSize
    kept[0] = False
    return kept[labels]
