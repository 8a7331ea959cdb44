"""Several versions of a name, changes in place, views, inner functions and values without an element type."""

import numpy as np


def measure(tile, *, low=40, high=200, width=3, power=1.5, exclude=False, weights=(1.0, 2.0)):
    image = tile.astype(np.float64)
    red, green, blue = image[..., 0], image[..., 1], image[..., 2]
    kernel = np.ones(width) / width

    # A view, changed in place: `image` changes too.
    red[red < low] = 0
    dark = image.sum(axis=2)

    def smoothed(values):
        return np.apply_along_axis(np.convolve, 1, values, kernel, mode="same")

    mask = smoothed(dark) > high
    before = mask.sum()
    mask = smoothed(mask.astype(np.float64)) > 0.5
    if exclude:
        mask[0] = False
        mask[-1] = False
    rows = [row.sum() for row in mask]
    total = 0.0
    for number, row in enumerate(rows):
        total += float(row) * weights[number % 2]
    mean = (dark[mask] ** power).mean() if mask.any() else 0.0
    return {"before": float(before), "after": float(mask.sum()), "total": total, "mean": float(mean), "blue": float(blue.mean())}
