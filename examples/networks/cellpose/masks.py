"""Masks of cells from the flows of Cellpose, by its own dynamics. It needs no weights."""

import numpy as np
from cellpose import dynamics


def masks(flows, cellprob, *, flow_threshold, cellprob_threshold, min_size):
    """Returns the label map of the cells.

    Pixels with a `cellprob` above `cellprob_threshold` follow the flows to the center of their cell. Cells with a flow error above
    `flow_threshold`, and those of less than `min_size` px, are removed. A `flow_threshold` of 0 keeps all.
    """
    # Views of the input would be written to.
    field = np.array(np.moveaxis(flows, 2, 0), order="C")
    labels = dynamics.compute_masks(
        field,
        np.array(cellprob),
        cellprob_threshold=cellprob_threshold,
        flow_threshold=flow_threshold,
        min_size=min_size,
    )
    return labels.astype(np.uint32)
