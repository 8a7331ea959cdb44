"""The network of Cellpose: flows and cell probability of a tile. It has no parameters, so it runs once a tile."""

import numpy as np
from cellpose import models


def load():
    """Returns the model `cpsam`. Cellpose downloads its weights to `~/.cellpose/models` when they are missing."""
    return models.CellposeModel(gpu=True, pretrained_model="cpsam")


def network(model, tile):
    """Returns the flows, float32 (h, w, 2) as rows and columns, and the logit of the cell probability, float32 (h, w)."""
    _, (_, flows, cellprob), _ = model.eval(np.ascontiguousarray(tile), compute_masks=False)
    return np.moveaxis(flows, 0, 2).astype(np.float32), cellprob.astype(np.float32)
