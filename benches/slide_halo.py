#!/usr/bin/env python3
"""Nuclei of an image cut into tiles against those of the whole image, by halo and by cause.

    benches/slide_halo.py [--size 8192] [--tile 2048] [--halos 0 32 64 128 256] [--seed 1] [--pleach BINARY]

Makes an image, normalizes it once (as a slide is: one fit for all tiles), and segments the whole and each window of the normalized image.
A nucleus counts for the tile whose core holds its centroid. It differs if the other segmentation has no nucleus with the same pixels. Its
cause is the first region, in the order of the tasks, that differs at the nucleus. Needs numpy, scipy and Pillow.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy
from PIL import Image
from scipy import ndimage

Image.MAX_IMAGE_PIXELS = None
# Regions in the order of the tasks that write them.
CAUSES = {
    "rbc": "red blood cells",
    "recon": "reconstruction",
    "bw1": "hole filling",
    "bw1_t": "area of candidates",
    "seg_open": "opening",
    "seg_nonoverlap": "watershed",
    "mask": "final area, hole filling",
}
EIGHT = numpy.ones((3, 3), bool)
# Pixels around a nucleus in which a cause is searched.
MARGIN_PX = 2


def segment(pleach: Path, folder: Path, image: Path, *options: str) -> dict:
    """Regions of a segmentation, by name."""
    regions = folder / "regions"
    command = [pleach, "segment", image, "--out", folder / "mask.png", "--regions", regions, *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found = {}
    for name in [*CAUSES, *(["normalized"] if options else [])]:
        array = folder / "region.npy"
        subprocess.run([pleach, "region", "export", regions / f"{name}.region", "--out", array], check=True, stdout=subprocess.DEVNULL)
        found[name] = numpy.load(array)
        array.unlink()
    subprocess.run(["rm", "-r", regions], check=True)
    return found


def objects(mask: numpy.ndarray, left: int, top: int, core: tuple) -> dict:
    """Bounding box by the pixels of each nucleus that the core owns, in pixels of the image."""
    labels, count = ndimage.label(mask, EIGHT)
    found = {}
    for label, box in enumerate(ndimage.find_objects(labels), 1):
        ys, xs = numpy.nonzero(labels[box] == label)
        ys, xs = ys + box[0].start + top, xs + box[1].start + left
        if core[0] <= xs.mean() + 0.5 < core[2] and core[1] <= ys.mean() + 0.5 < core[3]:
            found[xs.tobytes() + ys.tobytes()] = (xs.min(), ys.min(), xs.max() + 1, ys.max() + 1)
    return found


def cause(whole: dict, part: dict, window: tuple, box: tuple) -> str:
    left, top, right, bottom = window
    x0, y0 = max(left, box[0] - MARGIN_PX), max(top, box[1] - MARGIN_PX)
    x1, y1 = min(right, box[2] + MARGIN_PX), min(bottom, box[3] + MARGIN_PX)
    for name, words in CAUSES.items():
        if (whole[name][y0:y1, x0:x1] != part[name][y0 - top : y1 - top, x0 - left : x1 - left]).any():
            return words
    return "beyond the window"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=8_192)
    parser.add_argument("--tile", type=int, default=2_048)
    parser.add_argument("--halos", type=int, nargs="+", default=[0, 32, 64, 128, 256])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="a parameter value, as in G1=40")
    parser.add_argument("--pleach", default="target/release/pleach")
    args = parser.parse_args()
    pleach, sets = Path(args.pleach).resolve(), [f"--set={value}" for value in args.set]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [pleach, "tissue", "--out", folder, "--size", str(args.size), "--count", "1", "--seed", str(args.seed)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        whole = segment(pleach, folder, folder / "tissue_01.png", "--normalize", *sets)
        # Images have B, G, R.
        image = whole.pop("normalized")[..., ::-1]
        size = args.size
        count = len(objects(whole["mask"], 0, 0, (0, 0, size, size)))
        print(f"{size} x {size} px, {count} nuclei; tiles of {args.tile} px\n")
        words = list(CAUSES.values())
        print("| halo, px | computed pixels | differing nuclei | " + " | ".join(words) + " | beyond the window |")
        print("| --- " * (len(words) + 4) + "|")
        for halo in args.halos:
            totals, differing, pixels = dict.fromkeys([*words, "beyond the window"], 0), 0, 0
            for y in range(0, size, args.tile):
                for x in range(0, size, args.tile):
                    core = (x, y, min(size, x + args.tile), min(size, y + args.tile))
                    window = (max(0, x - halo), max(0, y - halo), min(size, core[2] + halo), min(size, core[3] + halo))
                    left, top, right, bottom = window
                    Image.fromarray(image[top:bottom, left:right]).save(folder / "part.png", compress_level=1)
                    part = segment(pleach, folder, folder / "part.png", *sets)
                    pixels += (right - left) * (bottom - top)
                    own = objects(part["mask"], left, top, core)
                    expected = objects(whole["mask"], 0, 0, core)
                    for pixels_of, box in [*expected.items(), *own.items()]:
                        if (pixels_of in expected) != (pixels_of in own):
                            totals[cause(whole, part, window, box)] += 1
                            differing += pixels_of in expected
            cells = [totals[word] for word in [*words, "beyond the window"]]
            print(f"| {halo} | {pixels / size**2:.3f} | {differing} ({differing / count:.2%}) | " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
