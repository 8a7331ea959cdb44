#!/usr/bin/env python3
"""The built-in workflow levelset beside a NumPy and scikit-image statement of the same six steps, on one core.

    python3 -m venv venv && venv/bin/pip install numpy scipy scikit-image imagecodecs tifffile
    venv/bin/python benches/levelset.py TILE LABELS [--pleach BINARY] [--repeat 3]

TILE is an H&E tile, LABELS its label map (0 is background). pleach runs a study of one parameter set, the defaults, without
normalization and with one worker; `run.json` has the seconds of each operation. The statement below visits the layers of the
contour by index and the windows by integral images, so that no step loops over pixels in Python. Prints seconds of
each step, the ratio of the sums, and Dice of both masks with LABELS, which must agree within 0.002.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import ndimage
from skimage import filters, io, measure

UNMIX = (1.8870768, 0.27801972, -1.55543811)
MPP = 0.25
LIMITS = {-2: (1.5, 2.5), -1: (0.5, 1.5), 1: (0.5, 1.5), 2: (1.5, 2.5)}
STUDY = """[study]
name = "levelset"
workflow = "levelset"
seed = 1
[input]
tiles = ["tiles/*"]
normalize = false
reference = "reference"
[method]
kind = "table"
file = "sets.csv"
[response]
metric = "dice"
"""


def l1(rgb: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hematoxylin as a gray image, and tissue."""
    density = -255 * np.log((rgb.astype(float) + 1) / 255) / np.log(255)
    light = np.exp(-(density @ np.array(UNMIX) - 255) * np.log(255) / 255)
    r, g, b = (rgb[..., channel].astype(int) for channel in range(3))
    tissue = -154 * r + 35 * g + 549 * b - 45718 < -57 * r - 817 * g + 1170 * b - 49887
    return np.floor(np.minimum(light, 255) + 0.5).astype(np.uint8), tissue


def l2(gray: np.ndarray, tissue: np.ndarray, ratio: float = 1.0) -> np.ndarray:
    """Tissue up to a multiple of Otsu's level."""
    return tissue & (gray <= ratio * filters.threshold_otsu(gray))


def windows(plane: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Sums over 11 x 11 px around the pixels, clipped to the plane."""
    total = np.zeros((plane.shape[0] + 1, plane.shape[1] + 1), plane.dtype)
    np.cumsum(np.cumsum(plane, 0), 1, out=total[1:, 1:])
    top, left = np.maximum(rows - 5, 0), np.maximum(columns - 5, 0)
    bottom, right = np.minimum(rows + 6, plane.shape[0]), np.minimum(columns + 6, plane.shape[1])
    return total[bottom, right] - total[top, right] - total[bottom, left] + total[top, left]


def evolve(gray: np.ndarray, mask: np.ndarray, weight: float, iterations: int) -> np.ndarray:
    """The level set. Planes have a margin of 1 px with a layer of its own."""
    stride = gray.shape[1] + 2
    sides = np.array([-1, 1, -stride, stride])
    inside = np.pad(mask, 1)
    within = np.pad(np.ones_like(mask), 1)
    layer = np.where(inside, -3, 3).astype(np.int8)
    layer[~within] = 99
    flat = layer.ravel()
    members = np.flatnonzero(flat == -3)
    flat[members[(flat[members[:, None] + sides] == 3).any(1)]] = 0
    for k in (-1, 1, -2, 2):
        s = np.sign(k)
        members = np.flatnonzero(flat == 3 * s)
        flat[members[(flat[members[:, None] + sides] == k - s).any(1)]] = k
    level = flat.astype(float)
    gray_plane = np.pad(gray.astype(np.int64), 1)[1:-1, 1:-1]
    for _ in range(iterations):
        contour = np.flatnonzero(flat == 0)
        if not len(contour):
            break
        rows, columns = contour // stride - 1, contour % stride - 1
        is_inside = (level.reshape(layer.shape)[1:-1, 1:-1] <= 0).astype(np.int64)
        count_in, sum_in = (windows(p, rows, columns) for p in (is_inside, is_inside * gray_plane))
        area, total = (windows(p, rows, columns) for p in (np.ones_like(gray_plane), gray_plane))
        value = gray_plane[rows, columns]
        data = (value - sum_in / (count_in + 1e-10)) ** 2
        data -= (value - (total - sum_in) / (area - count_in + 1e-10)) ** 2
        at = lambda offset: level[contour + offset]  # noqa: E731
        x, y = (at(1) - at(-1)) / 2, (at(stride) - at(-stride)) / 2
        xx, yy = at(1) - 2 * at(0) + at(-1), at(stride) - 2 * at(0) + at(-stride)
        xy = (at(stride + 1) - at(stride - 1) - at(1 - stride) + at(-stride - 1)) / 4
        curvature = (xx * y * y + yy * x * x - 2 * x * y * xy) / (x * x + y * y + 1e-10)
        curvature[(flat[contour[:, None] + sides] == 99).any(1)] = 0
        force = data / (np.abs(data).max() + 1e-10) + weight * curvature
        level[contour] += force / (np.abs(force).max() / 0.49 + 1e-10)
        new = flat.copy()
        new[contour] = (level[contour] > 0.5).astype(np.int8) - (level[contour] < -0.5)
        for k in (-1, 1, -2, 2):
            s = np.sign(k)
            members = np.flatnonzero(flat == k)
            around = members[:, None] + sides
            near = np.where(flat[around] == k - s, s * level[around], np.inf).min(1)
            found = np.isfinite(near)
            distance = near[found] + 1
            level[members[found]] = s * distance
            low, high = LIMITS[k]
            new[members[found]] = np.where(distance <= low, k - s, np.where(distance > high, k + s, k))
            new[members[~found]] = k + s
            gone = members[new[members] == 3 * s]
            level[gone] = 3 * s
        for s in (-1, 1):
            joined = np.flatnonzero((new == s) & (flat != s))
            around = (joined[:, None] + sides).ravel()
            distance = np.repeat(s * level[joined] + 1, 4)
            far = new[around] == 3 * s
            around, distance = around[far], distance[far]
            level[around] = np.inf
            np.minimum.at(level, around, distance)
            level[around] *= s
            new[around] = 2 * s
        flat[:] = new
    return level.reshape(layer.shape)[1:-1, 1:-1] <= 1


def l4(mask: np.ndarray, size_um2: float = 3.0) -> np.ndarray:
    """Objects of at least a size."""
    labels = measure.label(mask, connectivity=1)
    return (np.bincount(labels.ravel()) >= int(size_um2 / MPP**2))[labels] & mask


def shift(positions: np.ndarray, targets: np.ndarray, radius: float) -> np.ndarray:
    """Mean shift with a flat kernel."""
    for _ in range(100):
        near = ((positions[:, None] - targets) ** 2).sum(2) <= radius**2
        count = near.sum(1)
        moved = np.where(count[:, None] > 0, near @ targets / np.maximum(count, 1)[:, None], positions)
        if np.abs(moved - positions).max() < 1e-6:
            return moved
        positions = moved
    return positions


def parts(pixels: np.ndarray, radius: float) -> np.ndarray:
    """The part of each pixel of an object."""
    seeds = pixels[:: -(-len(pixels) // 1000)].astype(float)
    moved = shift(seeds, seeds, radius)
    for _ in range(2):
        moved = shift(moved, moved, 3.0)
    centers: list[np.ndarray] = []
    for end in moved:
        if all(((center - end) ** 2).sum() >= radius**2 for center in centers):
            centers.append(end)
    of_seed = ((moved[:, None] - np.array(centers)) ** 2).sum(2).argmin(1)
    return of_seed[((pixels[:, None] - seeds) ** 2).sum(2).argmin(1)]


def l5(mask: np.ndarray, most_um2: float = 200.0, radius: float = 20.0) -> np.ndarray:
    """Clumps split by mean shift, boundaries removed."""
    labels = measure.label(mask, connectivity=1)
    following = labels.max() + 1
    for region in measure.regionprops(labels):
        padded = np.pad(region.image, 1).astype(int)
        cells = padded[:-1, :-1] + 2 * padded[:-1, 1:] + 4 * padded[1:, :-1] + 8 * padded[1:, 1:]
        lengths = np.full(16, np.sqrt(0.5))
        lengths[[0, 15]], lengths[[6, 9]], lengths[[3, 5, 10, 12]] = 0, np.sqrt(2), 1
        perimeter = lengths[cells].sum()
        if region.area > most_um2 / MPP**2 or perimeter**2 / region.area > 30:
            part = parts(region.coords, radius)
            labels[tuple(region.coords.T)] = following + part
            following += part.max() + 1
    padded = np.pad(labels, 1, mode="edge")
    x, y = (padded[1:-1, 2:] - padded[1:-1, :-2]) / 2, (padded[2:, 1:-1] - padded[:-2, 1:-1]) / 2
    return (labels > 0) & (x * x + y * y < 0.25)


def statement(rgb: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    """The mask, and seconds of each step."""
    seconds: dict[str, float] = {}

    def timed(name: str, of, *given):
        start = time.process_time()
        result = of(*given)
        seconds[name] = time.process_time() - start
        return result

    gray, tissue = timed("levelset.hematoxylin", l1, rgb)
    mask = timed("levelset.threshold", l2, gray, tissue)
    mask = timed("levelset.contour", evolve, gray, mask, 0.8, 100)
    mask = timed("levelset.min-size", l4, mask)
    mask = timed("levelset.declump", l5, mask)
    refine = lambda: ndimage.binary_fill_holes(evolve(gray, mask, 0.8, 50))  # noqa: E731
    return timed("levelset.refine", refine), seconds


def pleach(binary: str, tile: Path, labels: Path) -> tuple[float, dict[str, float]]:
    """Dice, and seconds of each operation."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for target, source in (("tiles", tile), ("reference", labels)):
            (folder / target).mkdir()
            stem = tile.stem + ("_labels" if target == "reference" else "")
            shutil.copy(source, folder / target / f"{stem}{source.suffix}")
        (folder / "study.toml").write_text(STUDY)
        (folder / "sets.csv").write_text("otsuRatio\n1\n")
        command = [binary, "run", "study.toml", "--out", "out", "--workers", "1", "--strategy", "stage", "--quiet"]
        subprocess.run(command, cwd=folder, check=True)
        with (folder / "out/responses.csv").open() as file:
            dice = float(next(csv.DictReader(file))["dice"])
        operations = json.loads((folder / "out/run.json").read_text())["operations"]
        return dice, {o["name"]: o["seconds"] / o["runs"] for o in operations if o["name"].startswith("levelset.")}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tile", type=Path)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--pleach", default="target/release/pleach")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    rgb = io.imread(arguments.tile)[..., :3]
    reference = io.imread(arguments.labels) > 0
    ours, theirs = [], []
    for _ in range(arguments.repeat):
        dice, seconds = pleach(str(Path(arguments.pleach).resolve()), arguments.tile, arguments.labels)
        ours.append(seconds)
        mask, seconds = statement(rgb)
        theirs.append(seconds)
    other = 2 * (mask & reference).sum() / (mask.sum() + reference.sum())
    print(f"{'step':<22} {'pleach s':>9} {'NumPy s':>9} {'ratio':>7}")
    sums = [0.0, 0.0]
    for name in theirs[0]:
        pair = [statistics.median(run[name] for run in runs) for runs in (ours, theirs)]
        sums = [total + part for total, part in zip(sums, pair)]
        print(f"{name:<22} {pair[0]:>9.4f} {pair[1]:>9.4f} {pair[1] / pair[0]:>7.1f}")
    print(f"{'sum':<22} {sums[0]:>9.4f} {sums[1]:>9.4f} {sums[1] / sums[0]:>7.1f}")
    print(f"Dice {dice:.6f} and {other:.6f}")
    if abs(dice - other) > 0.002:
        sys.exit("the masks differ")


if __name__ == "__main__":
    main()
