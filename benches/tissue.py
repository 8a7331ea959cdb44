#!/usr/bin/env python3
"""Compares generated tissue with real annotated tiles: colors, nuclear density, cover and sizes.

    benches/tissue.py ANNOTATED [--pleach BINARY] [--tiles N] [--size PX]

ANNOTATED holds tiles X.png or X.tif with label maps X_labels.png, in folders. Prints a table: the range over real
tiles, the range over generated ones, and how many of these lie within the former. Wants NumPy and OpenCV
(benches/peers/requirements.txt).
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np


def statistics(image: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Colors of a tile (B, G, R) and sizes of its nuclei (pixels)."""
    found = {}
    for channel, name in enumerate("BGR"):
        found[f"mean {name}"] = float(image[..., channel].mean())
        found[f"deviation {name}"] = float(image[..., channel].std())
    areas = np.bincount(labels.ravel())[1:]
    areas = areas[areas > 0]
    found["nuclei a megapixel"] = len(areas) * 1e6 / labels.size
    found["share of nuclei"] = float(areas.sum()) / labels.size
    for quartile in (25, 50, 75):
        found[f"area, {quartile} %"] = float(np.percentile(areas, quartile))
    return found


def tiles(folder: Path) -> list[dict[str, float]]:
    """Statistics of every tile with a label map below a folder."""
    found = []
    for path in sorted(folder.rglob("*_labels.png")):
        stem = path.name.removesuffix("_labels.png")
        images = [path.with_name(stem + suffix) for suffix in (".png", ".tif", ".tiff", ".jpg")]
        image = next((cv2.imread(str(file)) for file in images if file.exists()), None)
        labels = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        if image is not None and labels is not None and labels.ndim == 2 and labels.max() > 0:
            found.append(statistics(image, labels))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("annotated", type=Path)
    parser.add_argument("--pleach", default="target/release/pleach")
    parser.add_argument("--tiles", default="40")
    parser.add_argument("--size", default="512")
    arguments = parser.parse_args()
    real = tiles(arguments.annotated)
    if not real:
        sys.exit(f"{arguments.annotated}: no tile with a label map")
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.pleach, "tissue", "--out", folder, "--size", arguments.size]
        subprocess.run([*command, "--count", arguments.tiles, "--seed", "1"], check=True, stdout=subprocess.DEVNULL)
        made = tiles(Path(folder))

    print(f"| statistic | {len(real)} real tiles | {len(made)} generated tiles | within |")
    print("| --- | --- | --- | --- |")
    for name in real[0]:
        low, high = (pick(tile[name] for tile in real) for pick in (min, max))
        values = [tile[name] for tile in made]
        within = sum(low <= value <= high for value in values)
        print(f"| {name} | {low:.4g} to {high:.4g} | {min(values):.4g} to {max(values):.4g} | {within} |")


if __name__ == "__main__":
    main()
