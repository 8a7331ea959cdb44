"""Trains the forest of `probability.py` on tiles with label maps or masks.

    .venv/bin/python train.py training/tissue_01.png training/tissue_02.png

Beside each tile X.png is X_labels.png: 0 is background, any other value is a nucleus. Equal tiles, options and versions
give the same file, byte for byte.
"""

import argparse
import sys
import tomllib
from pathlib import Path

import imageio.v3 as imageio
import joblib
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from features import features, names

FOLDER = Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tiles", type=Path, nargs="+", help="annotated tiles, such as X.png with X_labels.png")
    parser.add_argument("--model", type=Path, default=FOLDER / "model.joblib", help="file to write (default: model.joblib)")
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--depth", type=int, default=10, help="maximum depth of a tree")
    parser.add_argument("--pixels", type=int, default=4000, help="pixels of each class and tile")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    sigmas = scales()
    rng = np.random.default_rng(options.seed)
    drawn = [draw(*annotated(tile), sigmas, options.pixels, rng) for tile in options.tiles]
    pixels, classes = (np.concatenate(parts) for parts in zip(*drawn))
    forest = RandomForestClassifier(
        options.trees, max_depth=options.depth, min_samples_leaf=4, random_state=options.seed, n_jobs=1
    )
    forest.fit(pixels, classes)
    joblib.dump(forest, options.model, compress=3)
    ranked = sorted(zip(forest.feature_importances_, names(sigmas)), reverse=True)
    print(f"{options.model}: {options.trees} trees of {len(classes)} pixels, {options.model.stat().st_size} bytes")
    print("most important: " + ", ".join(f"{name} {share:.2f}" for share, name in ranked[:5]))


def scales():
    """Returns the sigmas that the manifest passes to `features`."""
    manifest = tomllib.loads((FOLDER / "pleach.toml").read_text())
    operation = next(each for each in manifest["operation"] if each["name"] == "python:features.features")
    return operation["constants"]["sigmas"]


def annotated(path):
    """Returns a tile, uint8 (h, w, 3), and the mask of its nuclei, bool (h, w)."""
    labels = path.with_name(f"{path.stem}_labels.png")
    if not labels.is_file():
        sys.exit(f"{path}: no file {labels.name} beside it; a label map or a mask of the same size is allowed")
    tile, mask = imageio.imread(path)[..., :3], imageio.imread(labels) > 0
    if mask.shape != tile.shape[:2]:
        sys.exit(f"{labels}: shape {mask.shape}; {tile.shape[:2]} is allowed, the shape of {path.name}")
    if mask.all() or not mask.any():
        sys.exit(f"{labels}: pixels of one class only; nuclei (above 0) and background (0) are allowed")
    return tile, mask


def draw(tile, mask, sigmas, number, rng):
    """Returns the features and classes of up to `number` pixels of each class."""
    found = features(tile, sigmas=sigmas).reshape(mask.size, -1)
    drawn = []
    for is_nucleus in (False, True):
        of_class = np.flatnonzero(mask.ravel() == is_nucleus)
        drawn.append(rng.choice(of_class, min(number, of_class.size), replace=False))
    return found[np.concatenate(drawn)], np.repeat([0, 1], [each.size for each in drawn])


if __name__ == "__main__":
    main()
