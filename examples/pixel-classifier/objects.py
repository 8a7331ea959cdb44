"""Nuclei from the probability of each pixel, in five functions.

Each function is pure: equal inputs and arguments give equal bits. Inputs are never written to. Lengths are in pixels.
"""

import numpy as np
from scipy import ndimage
from skimage import filters, measure, morphology, segmentation

# Unit of distances in `split`: reconstruction on integers is exact, on floats it is not.
_UNITS_A_PIXEL = 256


def threshold(probability, *, smoothing, level, margin):
    """Returns the mask of regions with a smoothed probability of at least `level - margin` that reach `level`.

    `smoothing` is the sigma of a Gaussian filter. With a margin of 0 it is a plain threshold.
    """
    smooth = ndimage.gaussian_filter(probability, smoothing, mode="nearest")
    return filters.apply_hysteresis_threshold(smooth, level - margin, level)


def opening(mask, *, radius):
    """Returns the opening of the mask with a disc. The surroundings of the tile count as foreground."""
    inside = mask > 0
    if radius == 0 or inside.all():
        return inside
    eroded = ndimage.distance_transform_edt(inside) > radius
    # The distance transform of an image without background is undefined.
    return ndimage.distance_transform_edt(~eroded) <= radius if eroded.any() else eroded


def clean(mask, *, max_hole_area, min_area):
    """Fills holes of up to `max_hole_area`, and removes 8-connected components below `min_area`.

    Background that reaches the border of the tile is no hole.
    """
    inside = mask > 0
    background, areas = _components(~inside, connectivity=1)
    is_small_hole = areas <= max_hole_area
    for edge in (background[0], background[-1], background[:, 0], background[:, -1]):
        is_small_hole[edge] = False
    foreground, areas = _components(inside | is_small_hole[background], connectivity=2)
    is_large = areas >= min_area
    is_large[0] = False
    return is_large[foreground]


def split(mask, *, distance_smoothing, seed_depth):
    """Returns the label map of a watershed on the distance to the background, which splits touching nuclei.

    `distance_smoothing` is the sigma of a Gaussian filter of the distance. Seeds are the extended maxima: two maxima share
    a seed if a path between them descends by at most `seed_depth` below the lower one. Each component has a seed.
    """
    inside = mask > 0
    distance = ndimage.distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1].astype(np.float32)
    smooth = ndimage.gaussian_filter(distance, distance_smoothing, mode="nearest")
    depth = round(seed_depth * _UNITS_A_PIXEL)
    heights = np.rint(smooth * _UNITS_A_PIXEL).astype(np.int32)
    # Background is deeper than `seed_depth`, also around the tile: the highest maximum of each component is a seed.
    terrain = np.pad(np.where(inside, heights, -depth - 1), 1, constant_values=-depth - 1)
    flattened = morphology.reconstruction(terrain - depth, terrain, footprint=np.ones((3, 3)))
    maxima = morphology.local_maxima(flattened, connectivity=2)[1:-1, 1:-1]
    seeds = measure.label(maxima, connectivity=2)
    return segmentation.watershed(-heights, seeds, connectivity=2, mask=inside)


def select(labels, probability, *, min_nucleus_area, min_confidence, min_solidity):
    """Returns the label map of the nuclei within limits of area, mean probability (confidence) and solidity."""
    candidates = labels.astype(np.int32)
    areas = np.bincount(candidates.ravel())
    confidence = np.bincount(candidates.ravel(), probability.ravel()) / np.maximum(areas, 1)
    is_nucleus = (areas >= min_nucleus_area) & (confidence >= min_confidence)
    is_nucleus[0] = False
    candidates[~is_nucleus[candidates]] = 0
    found = measure.regionprops_table(candidates, properties=("label", "solidity"))
    is_nucleus[found["label"]] &= found["solidity"] >= min_solidity
    return np.where(is_nucleus[candidates], candidates, 0)


def _components(inside, connectivity):
    """Returns the label map of the connected components, and the area of each label, also of label 0."""
    labels = measure.label(inside, connectivity=connectivity)
    return labels, np.bincount(labels.ravel())
