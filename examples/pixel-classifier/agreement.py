"""Agreement of nuclei with a reference: pixels by the Dice coefficient, nuclei by precision, recall and F1."""

import numpy as np


def compare(labels, reference, *, min_overlap):
    """Returns agreement, number and mean area (px) of the nuclei of a label map.

    A nucleus is found if its intersection over union with a nucleus of the reference is above `min_overlap`, 0.5 or more:
    each nucleus then has one partner at most. Without nuclei in both, Dice coefficient and F1 are 1.
    """
    found, expected = labels.astype(np.int64), reference.astype(np.int64)
    both = int(np.count_nonzero((found > 0) & (expected > 0)))
    pixels = int(np.count_nonzero(found)), int(np.count_nonzero(expected))
    matches = _matches(found, expected, min_overlap)
    numbers = _number(found), _number(expected)
    return {
        "f1": _share(2 * matches, sum(numbers)),
        "dice": _share(2 * both, sum(pixels)),
        "precision": _share(matches, numbers[0]),
        "recall": _share(matches, numbers[1]),
        "count": float(numbers[0]),
        "mean-area": pixels[0] / numbers[0] if numbers[0] else 0.0,
    }


def _matches(found, expected, min_overlap):
    """Returns the number of pairs with an intersection over union above `min_overlap`."""
    inside = (found > 0) & (expected > 0)
    pairs = found[inside] * (int(expected.max()) + 1) + expected[inside]
    pair, intersections = np.unique(pairs, return_counts=True)
    first, second = np.divmod(pair, int(expected.max()) + 1)
    unions = np.bincount(found.ravel())[first] + np.bincount(expected.ravel())[second] - intersections
    return int(np.count_nonzero(intersections > min_overlap * unions))


def _number(labels):
    """Returns the number of nuclei."""
    return int(np.count_nonzero(np.bincount(labels.ravel())[1:]))


def _share(part, whole):
    return part / whole if whole else 1.0
