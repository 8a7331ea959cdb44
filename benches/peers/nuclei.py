"""One run of the nuclear segmentation, with OpenCV, scikit-image and NumPy: normalization, seven tasks, comparison.

Images are arrays of rows × columns (× 3 in B, G, R); masks are uint8, 0 or 255. Each step uses the fastest library
function that does it on one thread. Nothing is kept from one call to the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import cv2
import numpy as np
from skimage.morphology import reconstruction

Image = np.ndarray
Parameters = Mapping[str, float]
Reconstruct = Callable[[Image, Image, float], Image]

# Workers are processes of one thread each; OpenCV's own threads would only get into each other's way.
cv2.setNumThreads(1)
cv2.ocl.setUseOpenCL(False)

CROSS = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))
BLOCK = cv2.getStructuringElement(cv2.MORPH_RECT, (3, 3))
SQUARE = cv2.getStructuringElement(cv2.MORPH_RECT, (11, 11))
RADIUS_PX = 9  # of the octagon: the square, then four times the cross
EPSILON = np.finfo(np.float32).eps
DILATIONS = 8  # between two looks whether anything changed, which cost as much as a dilation

LMS_FROM_RGB = np.array([[0.3811, 0.5783, 0.0402], [0.1967, 0.7244, 0.0782], [0.0241, 0.1288, 0.8444]])
RGB_FROM_LMS = np.array([[4.4687, -3.5887, 0.1196], [-1.2197, 2.3831, -0.1626], [0.0585, -0.2611, 1.2057]])
SCALES = np.diag(1 / np.sqrt([3.0, 6.0, 2.0]))
# OpenCV has the natural logarithm; log10 is that over ln 10.
LAB_FROM_LN_LMS = SCALES @ np.array([[1, 1, 1], [1, 1, -2], [1, -1, 0]]) / np.log(10)
LN_LMS_FROM_LAB = np.array([[1, 1, 1], [1, 1, -1], [1, -2, 0]]) @ SCALES * np.log(10)
TISSUE = np.array([[-154 + 57, 35 + 817, 549 - 1170]], dtype=np.float64)  # R, G, B; in thousandths
TISSUE_BELOW = 45_718 - 49_887
TARGET_MEAN = np.array([-0.632356, -0.0516004, 0.0376543])
TARGET_DEVIATION = np.array([0.26235, 0.0514831, 0.0114217])


def normalize(bgr: Image) -> Image:
    """Reinhard's color transfer in l-alpha-beta space, of the tissue only; float32, whose errors are below a level."""
    rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB).astype(np.float32)
    tissue = cv2.compare(cv2.transform(rgb, TISSUE), TISSUE_BELOW, cv2.CMP_LT)
    lab = cv2.transform(cv2.log(cv2.transform(rgb, LMS_FROM_RGB / 255)), LAB_FROM_LN_LMS)
    lightness, alpha, beta = cv2.split(lab)
    product = cv2.multiply(cv2.multiply(lightness, alpha), beta)
    sample = cv2.bitwise_and(tissue, cv2.compare(product, 0, cv2.CMP_GT))
    if cv2.countNonZero(sample):
        mean, deviation = (values.ravel() for values in cv2.meanStdDev(lab, mask=sample))
        gain = TARGET_DEVIATION / deviation
        moved = cv2.transform(lab, np.column_stack([np.diag(gain), TARGET_MEAN - mean * gain]))
        cv2.copyTo(moved, tissue, lab)
    lms = cv2.exp(cv2.transform(lab, LN_LMS_FROM_LAB))
    normalized = cv2.transform(lms, RGB_FROM_LMS[::-1] * 255)
    return cv2.add(normalized, (0, 0, 0, 0), dtype=cv2.CV_8U)  # rounds and clamps


def segment(bgr: Image, parameters: Parameters, reconstruct: Reconstruct, clock: Clock) -> Image:
    """The mask of the nuclei of a normalized tile; the clock learns what each task took."""
    rbc, background = red_blood_cells(bgr, parameters)
    clock.stop("t1 background")
    rc = cv2.bitwise_not(cv2.extractChannel(bgr, 2))
    diff = cv2.subtract(rc, reconstruct_opened(rc, parameters["MorphRecon"], reconstruct))
    clock.stop("t2 reconstruct")
    candidates = fill_holes(above(diff, parameters["G1"]), parameters["FillHoles"])
    clock.stop("t3 candidates")
    candidates = filter_by_area(candidates, 8, parameters["minSize"], parameters["maxSize"])
    clock.stop("t4 candidate area")
    if background or not candidates.any():
        return np.zeros_like(rc)
    nuclei = select(above(diff, parameters["G2"]), candidates)
    nuclei[rbc != 0] = 0
    nuclei = open_cross(fill_holes(nuclei, 4))
    clock.stop("t5 nuclei")
    nuclei = separate(nuclei, bgr, parameters, reconstruct)
    clock.stop("t6 separate")
    nuclei = filter_by_area(nuclei, 4, parameters["minSizeSeg"], parameters["maxSizeSeg"])
    mask = fill_holes(nuclei, parameters["FillHoles"])
    clock.stop("t7 final area")
    return mask


def compare(mask: Image, reference: Image) -> dict[str, float]:
    """Dice, Jaccard and the number of pixels that differ. Two empty masks agree."""
    both = cv2.countNonZero(cv2.bitwise_and(mask, reference))
    either = cv2.countNonZero(cv2.bitwise_or(mask, reference))
    dice, jaccard = (2 * both / (both + either), both / either) if either else (1.0, 1.0)
    return {"dice": dice, "jaccard": jaccard, "pixel-difference": either - both}


class Clock:
    """Adds the time between stops to named sums."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.last = time.perf_counter()

    def stop(self, name: str) -> None:
        """Ends a section, and begins the next."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self.last
        self.last = now


def red_blood_cells(bgr: Image, parameters: Parameters) -> tuple[Image, bool]:
    """t1: the mask of red blood cells, and whether the tile is background."""
    least = tuple(parameters[name] + 1 for name in "BGR")
    background = cv2.countNonZero(cv2.inRange(bgr, least, (255, 255, 255)))
    b, g, r = cv2.split(bgr)
    ratio = cv2.divide(r.astype(np.float32), g.astype(np.float32) + EPSILON)
    strong, weak = (cv2.compare(ratio, float(parameters[name]), cv2.CMP_GT) for name in ("T1", "T2"))
    if cv2.countNonZero(strong):
        # R/(B + ε) > 1 is R > B for whole numbers.
        rbc = cv2.bitwise_and(select(weak, strong), cv2.compare(r, b, cv2.CMP_GT))
    else:
        rbc = strong
    return rbc, background >= 0.9 * r.size


def reconstruct_opened(rc: Image, connectivity: float, reconstruct: Reconstruct) -> Image:
    """t2: the opening by the octagon, reconstructed under the image."""
    padded = cv2.copyMakeBorder(rc, *[RADIUS_PX] * 4, cv2.BORDER_CONSTANT, value=255)
    opened = cv2.erode(cv2.erode(padded, SQUARE), CROSS, iterations=4)
    opened = cv2.dilate(cv2.dilate(opened, SQUARE), CROSS, iterations=4)
    ring = RADIUS_PX - 1  # a ring of the opened padding stays, as a source
    marker = np.ascontiguousarray(opened[ring:-ring, ring:-ring])
    mask = marker.copy()
    mask[1:-1, 1:-1] = rc
    return reconstruct(marker, mask, connectivity)[1:-1, 1:-1]


def separate(seg_open: Image, bgr: Image, parameters: Parameters, reconstruct: Reconstruct) -> Image:
    """t6: nuclei that touch, cut along watershed lines."""
    large = filter_by_area(seg_open, 8, parameters["minSizePl"], np.inf)
    seg_big = cv2.dilate(large, CROSS)
    if seg_big.all():
        return seg_big
    distance = cv2.distanceTransform(seg_big, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    distance[seg_big == 0] = np.finfo(np.float32).max
    filled = reconstruct(distance - 1, distance, 8)
    lowered = reconstruct(filled - 1, filled, parameters["Watershed"])
    seeds = cv2.compare(lowered, filled - 1, cv2.CMP_EQ)
    _, labels = cv2.connectedComponents(seeds, connectivity=int(parameters["Watershed"]))

    black = cv2.copyMakeBorder(cv2.copyTo(bgr, seg_big), 1, 1, 1, 1, cv2.BORDER_CONSTANT)
    labels = cv2.copyMakeBorder(labels, 1, 1, 1, 1, cv2.BORDER_CONSTANT)
    line = cv2.watershed(black, labels)[1:-1, 1:-1] < 0
    return cv2.copyTo(seg_big, (~closed(line)).view(np.uint8))


def closed(line: np.ndarray) -> np.ndarray:
    """Watershed lines without diagonal leaks: below a line's pixel, beside a diagonal step of it, there is line too."""
    around = np.pad(line, 1)
    up, left, right = around[:-2, 1:-1], around[1:-1, :-2], around[1:-1, 2:]
    up_left, up_right = around[:-2, :-2], around[:-2, 2:]
    return line | (up & ((left & ~up_left) | (right & ~up_right)))


def by_sorting(marker: Image, mask: Image, connectivity: float) -> Image:
    """Grayscale reconstruction by dilation of `marker` under `mask`: scikit-image's function for it."""
    footprint = CROSS if connectivity == 4 else BLOCK
    return reconstruction(marker, mask, footprint=footprint).astype(mask.dtype, copy=False)


def by_iteration(marker: Image, mask: Image, connectivity: float) -> Image:
    """The same, by OpenCV's dilation until nothing changes: faster where nothing has far to go, as in small tiles."""
    footprint = CROSS if connectivity == 4 else BLOCK
    before, marker = marker, marker.copy()
    while True:
        for _ in range(DILATIONS):
            cv2.min(cv2.dilate(marker, footprint, dst=marker), mask, dst=marker)
        if np.array_equal(before, marker):
            return marker
        before = marker.copy()


RECONSTRUCTIONS: dict[str, Reconstruct] = {"scikit-image": by_sorting, "opencv": by_iteration}


def above(plane: Image, threshold: float) -> Image:
    """The mask of what is above the threshold."""
    return cv2.threshold(plane, threshold, 255, cv2.THRESH_BINARY)[1]


def fill_holes(mask: Image, connectivity: float) -> Image:
    """Fills what the background, connected so, does not reach from outside."""
    padded = cv2.copyMakeBorder(mask, 1, 1, 1, 1, cv2.BORDER_CONSTANT)
    cv2.floodFill(padded, None, (0, 0), 128, flags=int(connectivity))
    return cv2.compare(padded[1:-1, 1:-1], 128, cv2.CMP_NE)


def filter_by_area(mask: Image, connectivity: int, least: float, below: float) -> Image:
    """Keeps components of least <= area < below pixels."""
    _, labels, statistics, _ = cv2.connectedComponentsWithStats(mask, connectivity=connectivity)
    area = statistics[:, cv2.CC_STAT_AREA]
    keep = np.where((area >= least) & (area < below), 255, 0).astype(np.uint8)
    keep[0] = 0
    return keep[labels]


def select(mask: Image, seeds: Image) -> Image:
    """The 8-connected components of the mask that hold a seed."""
    count, labels = cv2.connectedComponents(mask, connectivity=8)
    keep = np.zeros(count, np.uint8)
    keep[labels[seeds != 0]] = 255
    keep[0] = 0
    return keep[labels]


def open_cross(mask: Image) -> Image:
    """Erosion by the cross with nothing outside, then dilation."""
    eroded = cv2.erode(mask, CROSS, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return cv2.dilate(eroded, CROSS)
