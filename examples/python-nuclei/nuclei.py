"""Segmentation of nuclei in H&E tiles of 40x (0.25 um/px), in six functions that pleach calls as tasks.

Each function is pure: equal inputs and arguments give equal bits. Inputs are never written to. Lengths are in pixels.
"""

import math

import numpy as np
from scipy import ndimage
from skimage import color, filters, measure, morphology, segmentation

# Optical density of each of the 256 channel values. The value 0 counts as 1: its density would be infinite.
_DENSITY = -np.log(np.maximum(np.arange(256), 1) / 255)

# Share of each channel's density (R, G, B) in the density of hematoxylin. A table of products in place of
# `color.separate_stains` avoids its matrix product, which BLAS would spread over threads.
_HEMATOXYLIN = [(_DENSITY * share).astype(np.float32) for share in color.hed_from_rgb[:, 0]]

_THRESHOLDS = {
    "otsu": filters.threshold_otsu,
    "li": filters.threshold_li,
    "triangle": filters.threshold_triangle,
}

# Unit of distances in `watershed`: reconstruction on integers is exact, on floats it is not.
_UNITS_A_PIXEL = 256


def deconvolve(tile):
    """Returns the optical density of hematoxylin (Ruifrok and Johnston) of an RGB tile, 0 or more."""
    density = _HEMATOXYLIN[0][tile[..., 0]]
    density += _HEMATOXYLIN[1][tile[..., 1]]
    density += _HEMATOXYLIN[2][tile[..., 2]]
    return np.maximum(density, 0, out=density)


def threshold(hematoxylin, *, smoothing, method, factor, floor):
    """Returns the mask of pixels above `factor` times a global threshold, and above `floor`.

    `smoothing` is the sigma of a Gaussian filter. `method` is that of the threshold: "otsu", "li" or "triangle". A
    constant image has no nuclei.
    """
    if hematoxylin.min() == hematoxylin.max():
        return np.zeros(hematoxylin.shape, dtype=bool)
    smooth = ndimage.gaussian_filter(hematoxylin, smoothing, mode="nearest")
    level = factor * float(_THRESHOLDS[method](smooth))
    return smooth > max(level, floor)


def clean(mask, *, opening_radius, max_hole_area, min_area):
    """Opens the mask with a disc, fills holes of up to `max_hole_area`, and removes components below `min_area`.

    Background that reaches the border of the tile is no hole.
    """
    opened = _open(mask > 0, opening_radius)
    # Background is 4-connected, foreground 8-connected: a closed curve of 8-connected pixels encloses a hole.
    background, areas = _components(~opened, connectivity=1)
    is_small_hole = areas <= max_hole_area
    for edge in (background[0], background[-1], background[:, 0], background[:, -1]):
        is_small_hole[edge] = False
    foreground, areas = _components(opened | is_small_hole[background], connectivity=2)
    is_large = areas >= min_area
    is_large[0] = False
    return is_large[foreground]


def distance(mask, *, distance_smoothing):
    """Returns the smoothed Euclidean distance to the background, 0 outside of the mask.

    The surroundings of the tile are background: a mask without background has a distance, too.
    """
    inside = mask > 0
    edt = ndimage.distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1].astype(np.float32)
    smooth = ndimage.gaussian_filter(edt, distance_smoothing, mode="nearest")
    return np.where(inside, smooth, np.float32(0))


def watershed(distance, mask, *, seed_depth, connectivity, compactness):
    """Returns the label map of a watershed that splits touching nuclei.

    Seeds are the extended maxima of the distance: two maxima share a seed if a path between them descends by at most
    `seed_depth` below the lower one. Each component of the mask has a seed. `connectivity` of pixels is 1 (edges) or 2
    (edges and corners). The larger `compactness`, the closer nuclei end to the middle between their seeds.
    """
    inside = mask > 0
    depth = round(seed_depth * _UNITS_A_PIXEL)
    heights = np.rint(distance * _UNITS_A_PIXEL).astype(np.int32)
    # Background is deeper than `seed_depth`, also around the tile: the highest maximum of each component is a seed.
    terrain = np.pad(np.where(inside, heights, -depth - 1), 1, constant_values=-depth - 1)
    footprint = ndimage.generate_binary_structure(2, connectivity)
    # In place of `morphology.h_maxima`, which returns all maxima of equal height, however shallow.
    flattened = morphology.reconstruction(terrain - depth, terrain, footprint=footprint)
    maxima = morphology.local_maxima(flattened, connectivity=connectivity)[1:-1, 1:-1]
    seeds = measure.label(maxima, connectivity=connectivity)
    return segmentation.watershed(
        -heights, seeds, connectivity=connectivity, mask=inside, compactness=compactness * _UNITS_A_PIXEL
    )


def features(labels, hematoxylin, *, border, min_nucleus_area, max_eccentricity, min_solidity, pixel_size):
    """Returns number and mean properties of the nuclei that meet the limits.

    `border` is "keep" or "exclude" for nuclei that touch the border of the tile. `pixel_size` is in um. The means of no
    nuclei are 0.
    """
    candidates = labels.astype(np.int32)
    candidates[(np.bincount(candidates.ravel()) < min_nucleus_area)[candidates]] = 0
    if border == "exclude":
        candidates = segmentation.clear_border(candidates)
    properties = ("area", "eccentricity", "solidity", "intensity_mean")
    found = measure.regionprops_table(candidates, hematoxylin.astype(np.float64), properties=properties)
    is_nucleus = (found["eccentricity"] <= max_eccentricity) & (found["solidity"] >= min_solidity)
    measured = {name: values[is_nucleus].tolist() for name, values in found.items()}
    count = len(measured["area"])
    square_millimeters = labels.size * (pixel_size / 1000) ** 2
    return {
        "count": float(count),
        "density": count / square_millimeters,
        "area-fraction": math.fsum(measured["area"]) / labels.size,
        "mean-area": _mean(measured["area"]),
        "mean-eccentricity": _mean(measured["eccentricity"]),
        "mean-solidity": _mean(measured["solidity"]),
        "mean-intensity": _mean(measured["intensity_mean"]),
    }


def _open(inside, radius):
    """Returns the opening with a disc. The surroundings of the tile count as foreground."""
    if radius == 0 or inside.all():
        return inside
    eroded = ndimage.distance_transform_edt(inside) > radius
    # The distance transform of an image without background is undefined.
    if not eroded.any():
        return eroded
    return ndimage.distance_transform_edt(~eroded) <= radius


def _components(inside, connectivity):
    """Returns the label map of the connected components, and the area of each label, also of label 0."""
    labels = measure.label(inside, connectivity=connectivity)
    return labels, np.bincount(labels.ravel())


def _mean(values):
    return math.fsum(values) / len(values) if values else 0.0
