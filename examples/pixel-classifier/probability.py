"""Probability that a pixel belongs to a nucleus, by a random forest that `train.py` has trained."""

import warnings
from pathlib import Path

import joblib
import numpy as np


def load():
    """Returns the forest of `model.joblib`.

    Raises `InconsistentVersionWarning` if another version of scikit-learn has written it: train it again.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return joblib.load(Path(__file__).parent / "model.joblib")


def probability(model, features):
    """Returns the probability of a nucleus at each pixel, float32 (h, w), from 0 to 1."""
    pixels = features.reshape(-1, features.shape[2])
    nucleus = model.predict_proba(pixels)[:, 1]
    return nucleus.astype(np.float32).reshape(features.shape[:2])
