#!/usr/bin/env python3
"""Studies of slides: nuclei by tile and halo against those of the whole slide, and what planning a gigapixel slide takes.

    benches/slides.py [SLIDE.svs] [--pleach BINARY]

Without a slide only the second. That slide is made here: 120,000 x 120,000 px whose tiles share what they hold, a disc of
tissue on glass. Fails where a command does.
"""

import argparse
import csv
import json
import os
import struct
import subprocess
import tempfile
import time
import zlib
from pathlib import Path

SIDE_PX = 120_000
PIECE_PX = 512
LEVELS = 8
# B at 255 takes no tile for background as a whole, so that what is left is due to halos.
SETS = "B,G1,G2\n220,80,45\n255,80,45\n255,40,20\n"

STUDY = """[study]
name = "slides"
workflow = "nuclei"
seed = 1
[input]
slides = ["{slide}"]
normalize = {normalize}
{lines}
[method]
{method}
[response]
metric = "nuclei"
"""
MOAT = 'kind = "moat"\ntrajectories = 10\nlevels = 20'
TABLE = 'kind = "table"\nfile = "sets.csv"'


def write_gigapixel(path: Path) -> None:
    """Writes the slide: a BigTIFF of tiles that refer to one of two images."""
    images = [zlib.compress(bytes(color) * PIECE_PX**2) for color in ((244, 244, 244), (180, 90, 160))]
    description = b"Aperio Image Library v10\r\n|AppMag = 20|MPP = 0.5000\0"
    body = bytearray(b"".join(images))
    places = [(16, len(images[0])), (16 + len(images[0]), len(images[1]))]

    def put(data: bytes) -> int:
        body.extend(b"\0" * (-len(body) % 8))
        body.extend(data)
        return 16 + len(body) - len(data)

    said, levels = put(description), []
    for level in range(LEVELS):
        side = SIDE_PX >> level
        count = -(-side // PIECE_PX)
        offset = [((place * PIECE_PX + PIECE_PX / 2) * 2**level / SIDE_PX - 0.5) ** 2 for place in range(count)]
        tiles = [places[offset[x] + offset[y] < 1 / 16] for y in range(count) for x in range(count)]
        tables = [put(struct.pack(f"<{len(tiles)}Q", *(tile[number] for tile in tiles))) for number in range(2)]
        levels.append((side, len(tiles), tables))
    first = put(b"")
    for number, (side, count, tables) in enumerate(levels):
        fields = [
            (254, 4, 1, int(number > 0)), (256, 4, 1, side), (257, 4, 1, side), (258, 3, 3, 0x800080008),
            (259, 3, 1, 8), (262, 3, 1, 2), (270, 2, len(description), said), (277, 3, 1, 3), (284, 3, 1, 1),
            (322, 4, 1, PIECE_PX), (323, 4, 1, PIECE_PX), (324, 16, count, tables[0]), (325, 16, count, tables[1]),
        ]  # fmt: skip
        body.extend(struct.pack("<Q", len(fields)))
        for field in fields:
            body.extend(struct.pack("<HHQQ", *field))
        body.extend(struct.pack("<Q", 16 + len(body) + 8 if number + 1 < LEVELS else 0))
    path.write_bytes(b"II" + struct.pack("<HHHQ", 43, 8, 0, first) + body)


def study(folder: Path, slide: Path, lines: str, method: str, normalize: str = "false") -> None:
    (folder / "sets.csv").write_text(SETS)
    text = STUDY.format(slide=slide, lines=lines, method=method, normalize=normalize)
    (folder / "study.toml").write_text(text)


def nuclei(pleach: Path, folder: Path, slide: Path, lines: str) -> tuple[int, list[int]]:
    """Tiles that were computed on, and the nuclei of each set over all of them."""
    study(folder, slide, lines, TABLE)
    subprocess.run([pleach, "run", "study.toml", "--out", "out", "--quiet"], cwd=folder, check=True)
    with (folder / "out/responses.csv").open() as file:
        rows = list(csv.DictReader(file))
    subprocess.run(["rm", "-r", folder / "out"], check=True)
    sets = sorted({row["evaluation"] for row in rows})
    counts = [sum(int(row["nuclei"]) for row in rows if row["evaluation"] == number) for number in sets]
    return len(rows) // len(sets), counts


def counts_by_halo(pleach: Path, folder: Path, slide: Path) -> None:
    print("| tiles | halo, px | computed on | nuclei | B = 255 | B = 255, G1 = 40, G2 = 20 |")
    print("| --- | --- | --- | --- | --- | --- |")
    _, whole = nuclei(pleach, folder, slide, "tile = 16384\nskip_background = false")
    print("| whole slide | | 1 | " + " | ".join(str(count) for count in whole) + " |")
    for halo in (0, 16, 32, 64, 151, 256):
        for skip in ("false", "true"):
            lines = f"tile = 512\nhalo = {halo}\nskip_background = {skip}"
            tiles, found = nuclei(pleach, folder, slide, lines)
            cells = (f"{count} ({count - all_of_it:+})" for count, all_of_it in zip(found, whole, strict=True))
            print(f"| 512 px | {halo} | {tiles} | " + " | ".join(cells) + " |")


def planning(pleach: Path, folder: Path) -> None:
    slide = folder / "gigapixel.svs"
    write_gigapixel(slide)
    print(f"\n{SIDE_PX} x {SIDE_PX} px, a file of {slide.stat().st_size / 1e6:.1f} MB; MOAT of 160 evaluations\n")
    print("| tile, px | background | tiles | runs | seconds | peak RSS, MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for tile in (4096, 1024):
        for skip, said in (("true", "left out"), ("false", "taken")):
            study(folder, slide, f"tile = {tile}\nskip_background = {skip}", MOAT, "true")
            start = time.monotonic()
            with subprocess.Popen(
                [pleach, "plan", "study.toml", "--json"], cwd=folder, stdout=subprocess.PIPE
            ) as process:
                plan = json.loads(process.stdout.read() if process.stdout else b"")["plans"][0]
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.monotonic() - start
            runs, evaluations = plan["runs"], plan["evaluations"]
            cells = (tile, said, runs // evaluations, runs, f"{seconds:.2f}", f"{used.ru_maxrss / 1024:.0f}")
            print("| " + " | ".join(str(cell) for cell in cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("slide", type=Path, nargs="?")
    parser.add_argument("--pleach", default="target/release/pleach")
    arguments = parser.parse_args()
    pleach = Path(arguments.pleach).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.slide:
            counts_by_halo(pleach, folder, arguments.slide.resolve())
        planning(pleach, folder)


if __name__ == "__main__":
    main()
