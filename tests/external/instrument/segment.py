"""Nuclei of H&E tiles of 40x, as one function: examples/python-nuclei before its cut into six tasks."""

import math
from typing import Literal

import numpy as np
from scipy import ndimage
from skimage import color, filters, measure, morphology, segmentation

DENSITY = -np.log(np.maximum(np.arange(256), 1) / 255)
HEMATOXYLIN = [(DENSITY * share).astype(np.float32) for share in color.hed_from_rgb[:, 0]]
THRESHOLDS = {
    "otsu": filters.threshold_otsu,
    "li": filters.threshold_li,
    "triangle": filters.threshold_triangle,
}
FLOOR = 0.2
UNITS_A_PIXEL = 256
PIXEL_SIZE = 0.25


def segment(
    tile,
    *,
    smoothing=1.0,
    method: Literal["otsu", "li", "triangle"] = "otsu",
    factor=0.9,
    opening_radius=1.5,
    max_hole_area=100,
    min_area=100,
    distance_smoothing=1.0,
    seed_depth=1.5,
    connectivity: Literal[1, 2] = 2,
    compactness: float = 0,
    border: Literal["keep", "exclude"] = "keep",
    min_nucleus_area=100,
    max_eccentricity=0.975,
    min_solidity=0.7,
):
    """Returns number and mean properties of the nuclei of a tile."""
    # Optical density of hematoxylin
    hematoxylin = HEMATOXYLIN[0][tile[..., 0]]
    hematoxylin += HEMATOXYLIN[1][tile[..., 1]]
    hematoxylin += HEMATOXYLIN[2][tile[..., 2]]
    hematoxylin = np.maximum(hematoxylin, 0)

    # Mask
    smooth = ndimage.gaussian_filter(hematoxylin, smoothing, mode="nearest")
    level = factor * float(THRESHOLDS[method](smooth)) if smooth.min() < smooth.max() else math.inf
    mask = smooth > max(level, FLOOR)

    # Background is 4-connected, foreground 8-connected.
    opened = open_mask(mask, opening_radius)
    background, areas = components(~opened, connectivity=1)
    is_small_hole = areas <= max_hole_area
    for edge in (background[0], background[-1], background[:, 0], background[:, -1]):
        is_small_hole[edge] = False
    foreground, areas = components(opened | is_small_hole[background], connectivity=2)
    is_large = areas >= min_area
    is_large[0] = False
    mask = is_large[foreground]

    # Distance to the background
    edt = ndimage.distance_transform_edt(np.pad(mask, 1))[1:-1, 1:-1].astype(np.float32)
    heights = ndimage.gaussian_filter(edt, distance_smoothing, mode="nearest")
    heights = np.where(mask, heights, np.float32(0))

    # Watershed from the extended maxima
    depth = round(seed_depth * UNITS_A_PIXEL)
    heights = np.rint(heights * UNITS_A_PIXEL).astype(np.int32)
    terrain = np.pad(np.where(mask, heights, -depth - 1), 1, constant_values=-depth - 1)
    footprint = ndimage.generate_binary_structure(2, connectivity)
    flattened = morphology.reconstruction(terrain - depth, terrain, footprint=footprint)
    maxima = morphology.local_maxima(flattened, connectivity=connectivity)[1:-1, 1:-1]
    seeds = measure.label(maxima, connectivity=connectivity)
    labels = segmentation.watershed(
        -heights, seeds, connectivity=connectivity, mask=mask, compactness=compactness * UNITS_A_PIXEL
    )

    # Features
    labels[(np.bincount(labels.ravel()) < min_nucleus_area)[labels]] = 0
    if border == "exclude":
        labels = segmentation.clear_border(labels)
    properties = ("area", "eccentricity", "solidity", "intensity_mean")
    found = measure.regionprops_table(labels, hematoxylin.astype(np.float64), properties=properties)
    is_nucleus = (found["eccentricity"] <= max_eccentricity) & (found["solidity"] >= min_solidity)
    measured = {name: values[is_nucleus].tolist() for name, values in found.items()}
    count = len(measured["area"])
    return {
        "count": float(count),
        "density": count / (labels.size * (PIXEL_SIZE / 1000) ** 2),
        "area-fraction": math.fsum(measured["area"]) / labels.size,
        "mean-area": mean(measured["area"]),
        "mean-eccentricity": mean(measured["eccentricity"]),
        "mean-solidity": mean(measured["solidity"]),
        "mean-intensity": mean(measured["intensity_mean"]),
    }


def open_mask(inside, radius):
    """Returns the opening with a disc. The surroundings of the tile count as foreground."""
    if radius == 0 or inside.all():
        return inside
    eroded = ndimage.distance_transform_edt(inside) > radius
    if not eroded.any():
        return eroded
    return ndimage.distance_transform_edt(~eroded) <= radius


def components(inside, connectivity):
    labels = measure.label(inside, connectivity=connectivity)
    return labels, np.bincount(labels.ravel())


def mean(values):
    return math.fsum(values) / len(values) if values else 0.0
