"""Control flow: loops, branches, handlers, checks, messages, and an input that the function changes."""

import numpy as np
from scipy import ndimage


def count(tile, steps=2, level: float = 90, attempts=3, min_size=5):
    assert steps >= 0, "steps"
    tile[:2] = 255
    gray = tile.mean(axis=2)
    for _ in range(steps):
        gray = ndimage.uniform_filter(gray, 3)
    try:
        mask = gray < level
    except TypeError:
        mask = gray < 90
    finally:
        done = True
    while attempts > 0 and mask.any():
        mask = ndimage.binary_erosion(mask)
        attempts -= 1
    print("eroded", done, attempts)
    labels, found = ndimage.label(mask)
    if found == 0:
        return 0.0
    sizes = np.bincount(labels.ravel())[1:]
    with np.errstate(divide="ignore"):
        kept = sizes >= min_size
    return float(kept.sum())
