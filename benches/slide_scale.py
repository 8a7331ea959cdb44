#!/usr/bin/env python3
"""A generated slide: segmented with one parameter set, studied with ten, on one worker and on several, and resumed after kill -9.

    benches/slide_scale.py [--side 120000] [--tile 4096] [--workers 4] [--memory 1500MB] [--slides 10] [--pleach BINARY]

Prints seconds for a gigapixel of tissue, peak memory of each worker, bytes written, and seconds against those of the same tiles run
singly (needs numpy and Pillow). Fails where a command does, where results differ, and where a worker exceeds 2 GB.
"""

import argparse
import csv
import io
import json
import os
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from overhead import Client, Cluster, peak_megabytes

MAX_WORKER_MB = 2_000
SETS = "G1,G2\n" + "".join(f"{g1},{g2}\n" for g1, g2 in zip(range(80, 30, -5), range(45, 25, -2), strict=True))
STUDY = """[study]
name = "slide"
workflow = "nuclei"
seed = 1
[input]
{inputs}
[method]
kind = "table"
file = "sets.csv"
[response]
metric = "nuclei"
"""


def study(folder: Path, inputs: str, sets: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "sets.csv").write_text("\n".join(SETS.splitlines()[: sets + 1]) + "\n")
    (folder / "study.toml").write_text(STUDY.format(inputs=inputs))


def measured(command: list, folder: Path) -> tuple[float, float, float]:
    """Seconds, peak MB and written MB of a command."""
    start = time.monotonic()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (command, process.returncode)
    return time.monotonic() - start, used.ru_maxrss / 1e3, used.ru_oublock * 512 / 1e6


def nuclei(results: Path) -> list[dict]:
    with (results / "responses.csv").open() as file:
        return list(csv.DictReader(file))


def window(path: Path, left: int, top: int, width: int, height: int):
    """Pixels of the first level of a slide that `pleach tissue` wrote: R, G, B."""
    import numpy
    from PIL import Image

    with path.open("rb") as file:

        def read(at: int, form: str) -> tuple:
            file.seek(at)
            return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))

        (directory,) = read(8, "Q")
        (count,) = read(directory, "Q")
        fields = {}
        for number in range(count):
            tag, _, values, value = read(directory + 8 + 20 * number, "HHQQ")
            fields[tag] = (values, value)
        columns, side = -(-fields[256][1] // 256), 256
        first, last = (left // side, top // side), (-(-(left + width) // side), -(-(top + height) // side))
        image = numpy.empty(((last[1] - first[1]) * side, (last[0] - first[0]) * side, 3), numpy.uint8)
        for row in range(first[1], last[1]):
            for column in range(first[0], last[0]):
                place = 8 * (row * columns + column)
                (at,), (length,) = read(fields[324][1] + place, "Q"), read(fields[325][1] + place, "Q")
                file.seek(at)
                piece = Image.open(io.BytesIO(file.read(length)))
                y, x = (row - first[1]) * side, (column - first[0]) * side
                image[y : y + side, x : x + side] = piece
    y, x = top - first[1] * side, left - first[0] * side
    return image[y : y + height, x : x + width]


def singly(pleach: Path, folder: Path, slide: Path, args: argparse.Namespace, side: int) -> float:
    """Seconds for a tile that is run alone, as a file, with ten parameter sets: the mean of some tiles with tissue."""
    from PIL import Image

    names = sorted({row["tile"] for row in nuclei(folder / "one")})
    chosen, total = names[:: max(1, len(names) // args.single)][: args.single], 0.0
    for number, name in enumerate(chosen):
        x, y = (int(at) for at in name.split("/")[1].split("_"))
        left, top = max(0, x - args.halo), max(0, y - args.halo)
        right, bottom = min(side, x + args.tile + args.halo), min(side, y + args.tile + args.halo)
        alone = folder / f"alone-{number}"
        study(alone, 'tiles = ["tile.png"]', 10)
        Image.fromarray(window(slide, left, top, right - left, bottom - top)).save(alone / "tile.png", compress_level=1)
        command = [pleach, "run", "study.toml", "--out", "out", "--workers", "1", "--quiet"]
        total += measured(command, alone)[0]
    return total / len(chosen)


def clustered(pleach: Path, folder: Path, workers: int, memory: str) -> tuple[float, list[float], int]:
    """Seconds on a cluster, peak MB of each worker, and bytes that they wrote."""
    Cluster.memory, Cluster.window = memory, 2
    cluster = Cluster(str(pleach), folder, workers)
    try:
        start = time.monotonic()
        id = cluster.ask("submit", "study.toml").strip()
        client = Client(cluster)
        state = lambda: json.loads(client.get(f"/api/v1/studies/{id}"))
        while (now := state())["state"] in ("queued", "running"):
            time.sleep(0.1)
        assert now["state"] == "complete" and now["failed"] == 0, now
        seconds = time.monotonic() - start
        pids = [process.pid for process in cluster.processes[1:]]
        peaks = [peak_megabytes(pid) for pid in pids]
        written = lambda pid: int(Path(f"/proc/{pid}/io").read_text().split("write_bytes: ")[1].split()[0])
        total = sum(map(written, [cluster.manager.pid, *pids]))
        cluster.ask("results", id, "--out", f"cluster-{workers}")
    finally:
        cluster.end()
    return seconds, peaks, total


def interrupted(pleach: Path, folder: Path, seconds: float) -> float:
    """Kills a run in its middle, resumes it, and returns the seconds of the second part."""
    command = [pleach, "run", "study.toml", "--out", "killed", "--workers", "1", "--quiet", "--resume"]
    with subprocess.Popen(command, cwd=folder) as process:
        time.sleep(seconds / 2)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, "the run ended before it was killed"
    return measured(command, folder)[0]


def row(*cells: object) -> None:
    print("| " + " | ".join(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells) + " |", flush=True)


def one_slide(pleach: Path, folder: Path, args: argparse.Namespace) -> None:
    slide = folder / "slide.tif"
    command = [pleach, "tissue", "--slide", f"{args.side}x{args.side}", "--out", slide, "--annotations", folder / "nuclei.geojson"]
    seconds, peak, _ = measured(command, folder)
    size = slide.stat().st_size
    print(f"{args.side} x {args.side} px made in {seconds:.1f} s, peak {peak:.0f} MB: {size / 1e6:.1f} MB, annotations of {(folder / 'nuclei.geojson').stat().st_size / 1e6:.1f} MB\n")
    inputs = f'slides = ["slide.tif"]\ntile = {args.tile}\nhalo = {args.halo}'
    row("", "tiles", "seconds", "s for a gigapixel of tiles", "peak MB", "written MB")
    row(*["---"] * 6)
    study(folder, inputs, 1)
    base = [pleach, "run", "study.toml", "--workers", "1", "--memory", args.memory, "--quiet", "--out"]
    seconds, peak, written = measured([*base, "one"], folder)
    tiles = len({line["tile"] for line in nuclei(folder / "one")})
    gigapixels = tiles * (args.tile + 2 * args.halo) ** 2 / 1e9
    row("1 set, 1 worker", tiles, seconds, seconds / gigapixels, peak, written)
    assert peak < MAX_WORKER_MB, peak
    study(folder, inputs, 10)
    seconds, peak, written = measured([*base, "ten"], folder)
    row("10 sets, 1 worker", tiles, seconds, seconds / gigapixels, peak, written)
    assert peak < MAX_WORKER_MB, peak
    ten = seconds
    # Memory of regions: a worker also holds the slide's reader, code and stacks.
    for workers in {1, args.workers}:
        seconds, peaks, written = clustered(pleach, folder, workers, args.memory)
        row(f"10 sets, cluster of {workers}", tiles, seconds, seconds / gigapixels, max(peaks), written / 1e6)
        assert nuclei(folder / f"cluster-{workers}") == nuclei(folder / "ten"), "results differ"
        assert max(peaks) < MAX_WORKER_MB, peaks
    resumed = interrupted(pleach, folder, ten)
    assert nuclei(folder / "killed") == nuclei(folder / "ten"), "results differ after kill -9"
    print(f"\nkilled after {ten / 2:.1f} s and resumed: {resumed:.1f} s more, equal results")
    if args.single:
        alone = singly(pleach, folder, slide, args, args.side)
        print(f"tiles run singly: {alone:.2f} s a tile, {alone * tiles:.1f} s in all; the study takes {ten / (alone * tiles):.2f} times as long")


def many_slides(pleach: Path, folder: Path, args: argparse.Namespace) -> None:
    # Small tiles: 10 or more of each slide.
    side, tile = max(2_048, args.side // 10), max(256, args.side // 80)
    for number in range(args.slides):
        command = [pleach, "tissue", "--slide", f"{side}x{side}", "--out", f"s{number}.tif", "--seed", str(number)]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    study(folder, f'slides = ["s*.tif"]\ntile = {tile}\nhalo = {args.halo}', 10)
    (folder / "slide.tif").rename(folder / "large.tiff")
    seconds, peak, written = measured([pleach, "run", "study.toml", "--workers", "1", "--quiet", "--out", "many"], folder)
    counts: dict[str, set] = {}
    for line in nuclei(folder / "many"):
        counts.setdefault(line["tile"].split("/")[0], set()).add(line["tile"])
    least = min(map(len, counts.values()))
    print(f"\n{len(counts)} slides of {side} px, {sum(map(len, counts.values()))} tiles of {tile} px (at least {least} a slide), 10 sets: {seconds:.1f} s, peak {peak:.0f} MB, {written:.1f} MB written")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=120_000)
    parser.add_argument("--tile", type=int, default=4_096)
    parser.add_argument("--halo", type=int, default=64)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--memory", default="1500MB")
    parser.add_argument("--slides", type=int, default=10)
    parser.add_argument("--single", type=int, default=4, help="tiles to run alone; 0: none")
    parser.add_argument("--pleach", default="target/release/pleach")
    args = parser.parse_args()
    pleach = Path(args.pleach).resolve()
    with tempfile.TemporaryDirectory() as name:
        one_slide(pleach, Path(name), args)
        if args.slides:
            many_slides(pleach, Path(name), args)


if __name__ == "__main__":
    main()
