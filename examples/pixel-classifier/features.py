"""Features of the pixels of an H&E tile: densities of two stains at several scales, with edges and blobs.

The function is pure: equal tiles give equal bits. Tiles are never written to. Lengths are in pixels.
"""

import numpy as np
from scipy import ndimage
from skimage import color

# Optical density of each of the 256 channel values. The value 0 counts as 1: its density would be infinite.
_DENSITY = -np.log(np.maximum(np.arange(256), 1) / 255)

# Share of each channel's density (R, G, B) in the density of hematoxylin and of eosin, as tables of products.
_STAINS = [[(_DENSITY * share).astype(np.float32) for share in color.hed_from_rgb[:, stain]] for stain in (0, 1)]

# Features of each scale, in the order of the channels.
AT_EACH_SCALE = ["hematoxylin", "eosin", "edge", "blob", "ridge"]


def names(sigmas):
    """Returns the names of the channels of `features`."""
    return ["hematoxylin", "eosin", *(f"{name}-{sigma:g}" for sigma in sigmas for name in AT_EACH_SCALE)]


def features(tile, *, sigmas):
    """Returns the features of an RGB tile, float32 (h, w, 2 + 5 * len(sigmas)).

    The first two channels are the optical densities of hematoxylin and eosin (Ruifrok and Johnston). For each sigma follow
    both densities after a Gaussian filter, and of hematoxylin the gradient magnitude (edge) and the larger and the smaller
    eigenvalue of the Hessian (blob, ridge). Derivatives are multiplied by powers of sigma, so scales compare.
    """
    hematoxylin, eosin = (_density(tile, shares) for shares in _STAINS)
    found = np.empty((*tile.shape[:2], 2 + len(AT_EACH_SCALE) * len(sigmas)), dtype=np.float32)
    found[..., 0], found[..., 1] = hematoxylin, eosin
    for index, sigma in enumerate(sigmas):
        smooth = ndimage.gaussian_filter(hematoxylin, sigma, mode="nearest")
        rows, columns = (_slope(smooth, axis) for axis in (0, 1))
        second = _slope(rows, 0), _slope(rows, 1), _slope(columns, 1)
        middle, spread = (second[0] + second[2]) / 2, np.hypot((second[0] - second[2]) / 2, second[1])
        first = 2 + len(AT_EACH_SCALE) * index
        found[..., first] = smooth
        found[..., first + 1] = ndimage.gaussian_filter(eosin, sigma, mode="nearest")
        found[..., first + 2] = np.hypot(rows, columns) * np.float32(sigma)
        found[..., first + 3] = (middle + spread) * np.float32(sigma**2)
        found[..., first + 4] = (middle - spread) * np.float32(sigma**2)
    return found


def _density(tile, shares):
    """Returns the density of a stain, 0 or more."""
    density = shares[0][tile[..., 0]] + shares[1][tile[..., 1]] + shares[2][tile[..., 2]]
    return np.maximum(density, 0, out=density)


def _slope(image, axis):
    """Returns the derivative by central differences; at the border, that of the image continued by its last pixels."""
    return ndimage.correlate1d(image, np.array([-0.5, 0, 0.5], dtype=np.float32), axis=axis, mode="nearest")
