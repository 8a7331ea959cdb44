"""Names that share memory, helpers that change arguments, functions that read names when they are called, and a seeded generator."""

from functools import partial

import numpy as np


def doubled(values, out):
    out[:] = values * 2
    return out


def blend(tile, *, level=30, scale=2.0, rows=1, noise=3.0, shift=2, gain=0.5):
    first = tile[..., 0].astype(float)
    second = np.empty_like(first)
    third = doubled(first, second)
    limit = level
    above = lambda values, least=scale: values > limit * least
    mask = above(third)
    # `above` reads the limit when it is called.
    limit = rows
    other = partial(above)(second)

    rng = np.random.default_rng(7)
    drawn = rng.normal(size=tile.shape[:2])
    noisy = tile.mean(2) + drawn * noise
    drawn = rng.normal(size=tile.shape[:2])
    spectrum = np.sort(np.fft.fft2(noisy + drawn * shift).real)

    view = np.asarray(tile)[..., 1]
    image = tile.copy()
    image[image < shift] = 0
    columns = np.fft.fft(np.asfortranarray(image.mean(axis=2)).T, axis=0).real
    norm = np.linalg.norm(np.fft.fft2(view).real + np.linalg.norm(columns) * noise)
    alias = first
    alias *= gain
    return {
        "mask": float(mask.sum()),
        "other": float(other.sum()),
        "spectrum": float(spectrum.sum()),
        "norm": float(norm),
        "first": float(first.sum()),
    }
