"""Number and area of labeled nuclei."""

import numpy as np


def count(labels):
    """Returns the number of nuclei, their mean area (px) and their share of the tile."""
    areas = np.bincount(labels.ravel())[1:]
    areas = areas[areas > 0]
    return {
        "count": float(areas.size),
        "mean-area": float(areas.sum() / areas.size) if areas.size else 0.0,
        "area-fraction": float(areas.sum() / labels.size),
    }
