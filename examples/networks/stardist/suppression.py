"""Label map of nuclei from the prediction of StarDist, by its own non-maximum suppression. It needs no weights."""

import numpy as np
from stardist.geometry import polygons_to_label
from stardist.nms import non_maximum_suppression


def suppress(tile, probability, distances, *, prob_thresh, nms_thresh, grid):
    """Returns the label map of the nuclei, of the size of the tile.

    Candidates are pixels with a probability above `prob_thresh`. Of two that overlap by more than `nms_thresh`, the one of lower
    probability is removed. `grid` is the distance of the prediction's pixels on the tile, px.
    """
    points, scores, rays = non_maximum_suppression(
        np.array(distances), np.array(probability), grid=(grid, grid), prob_thresh=prob_thresh, nms_thresh=nms_thresh
    )
    labels = polygons_to_label(rays, points, shape=tile.shape[:2], prob=scores)
    return labels.astype(np.uint32)
