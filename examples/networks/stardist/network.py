"""The network of StarDist: probability and distances of each pixel. It has no parameters, so it runs once a tile."""

import numpy as np
from csbdeep.utils import normalize
from stardist.models import StarDist2D


def load():
    """Returns the model `2D_versatile_he`. StarDist downloads its weights to `~/.keras/models` when they are missing."""
    return StarDist2D.from_pretrained("2D_versatile_he")


def predict(model, tile):
    """Returns the probability, float32 (h, w), and the distances to the border along 32 rays, float32 (h, w, 32).

    A network on a grid of g px returns one pixel of g x g, as the study's `suppress` expects of `grid`.
    """
    found = model.predict(normalize(tile.astype(np.float32), 1, 99.8, axis=(0, 1, 2)), axes="YXC")
    return found[0].astype(np.float32), found[1].astype(np.float32)
