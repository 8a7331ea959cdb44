#!/usr/bin/env python3
"""A generated slide: segmented with one parameter set, studied with ten, on one worker and on several, and resumed after kill -9.

    benches/slide_scale.py [--side 120000] [--tile 4096] [--workers 4] [--memory 1500MB] [--slides 10] [--pleach BINARY]
    benches/slide_scale.py --brief [--slide slide.tif] [--kill-after SECONDS] …

Prints seconds and processor seconds for a gigapixel of tissue, peak memory of each worker, bytes written, and seconds against those
of the same tiles run singly (needs numpy and Pillow). Fails where a command does, where results differ, where a worker exceeds 2 GB,
and where the tiles run singly take less than 1/1.2 of the study's seconds. `--brief` runs one set, killed and resumed, and ten sets
on the cluster: the least that shows each of these for a large slide.
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
import typing
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


class Used(typing.NamedTuple):
    """What a command or a worker has used."""

    seconds: float
    processor_seconds: float
    peak_mb: float
    written_mb: float


def measured(command: list, folder: Path, kill_after: float | None = None) -> Used:
    """Runs a command, or kills it after some seconds."""
    start = time.monotonic()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        if kill_after is not None:
            time.sleep(kill_after)
            process.send_signal(signal.SIGKILL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == (0 if kill_after is None else -signal.SIGKILL), (command, process.returncode)
    processor = used.ru_utime + used.ru_stime
    return Used(time.monotonic() - start, processor, used.ru_maxrss / 1e3, used.ru_oublock * 512 / 1e6)


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
        total += measured(command, alone).seconds
    return total / len(chosen)


def clustered(pleach: Path, folder: Path, workers: int, memory: str) -> Used:
    """Runs the study on a cluster. The peak is that of one worker; the rest is of manager and workers together."""
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
        peak = max(peak_megabytes(pid) for pid in pids)
        pids.append(cluster.manager.pid)
        # Fields 14 and 15 of the process, in ticks; the name in parentheses may have spaces.
        ticks = lambda pid: sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        written = lambda pid: int(Path(f"/proc/{pid}/io").read_text().split("write_bytes: ")[1].split()[0])
        processor = sum(map(ticks, pids)) / os.sysconf("SC_CLK_TCK")
        total = sum(map(written, pids)) / 1e6
        cluster.ask("results", id, "--out", f"cluster-{workers}")
    finally:
        cluster.end()
    return Used(seconds, processor, peak, total)


def row(*cells: object) -> None:
    print("| " + " | ".join(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells) + " |", flush=True)


class Study:
    """A study of one slide, its table of figures, and the results that all runs must have."""

    def __init__(self, pleach: Path, folder: Path, args: argparse.Namespace) -> None:
        self.pleach, self.folder, self.args, self.tiles = pleach, folder, args, 0
        self.inputs = f'slides = ["slide.tif"]\ntile = {args.tile}\nhalo = {args.halo}'

    def command(self, out: str, *options: str) -> list:
        run = ["run", "study.toml", "--workers", "1", "--memory", self.args.memory, "--quiet", "--out", out]
        return [self.pleach, *run, *options]

    def show(self, title: str, out: str, used: Used) -> None:
        if not self.tiles:
            self.tiles = len({line["tile"] for line in nuclei(self.folder / out)})
            row("", "tiles", "seconds", "s for a gigapixel of tiles", "processor s for a gigapixel", "peak MB", "written MB")
            row(*["---"] * 7)
        gigapixels = self.tiles * (self.args.tile + 2 * self.args.halo) ** 2 / 1e9
        rates = used.seconds / gigapixels, used.processor_seconds / gigapixels
        row(title, self.tiles, used.seconds, *rates, used.peak_mb, used.written_mb)
        # Memory of regions: a worker also holds the slide's reader, code and stacks.
        assert used.peak_mb < MAX_WORKER_MB, used

    def interrupted(self, title: str, out: str, seconds: float) -> None:
        """Kills a run after some seconds, and resumes it. The figures are of both parts together."""
        first = measured(self.command(out, "--resume"), self.folder, seconds)
        second = measured(self.command(out, "--resume"), self.folder)
        sums = Used(*map(sum, zip(first, second, strict=True)))._replace(peak_mb=max(first.peak_mb, second.peak_mb))
        self.show(title, out, sums)
        print(f"killed after {first.seconds:.1f} s and resumed: {second.seconds:.1f} s more", flush=True)

    def clustered(self, workers: int) -> None:
        used = clustered(self.pleach, self.folder, workers, self.args.memory)
        self.show(f"10 sets, cluster of {workers}", f"cluster-{workers}", used)


def made(pleach: Path, folder: Path, args: argparse.Namespace) -> None:
    slide = folder / "slide.tif"
    if args.slide:
        slide.symlink_to(args.slide.resolve())
        return
    command = [pleach, "tissue", "--slide", f"{args.side}x{args.side}", "--out", slide, "--annotations", folder / "nuclei.geojson"]
    used = measured(command, folder)
    annotations = (folder / "nuclei.geojson").stat().st_size / 1e6
    print(f"{args.side} x {args.side} px made in {used.seconds:.1f} s ({used.processor_seconds:.1f} processor s), peak {used.peak_mb:.0f} MB: {slide.stat().st_size / 1e6:.1f} MB, annotations of {annotations:.1f} MB\n")


def brief(pleach: Path, folder: Path, args: argparse.Namespace) -> None:
    of_slide = Study(pleach, folder, args)
    study(folder, of_slide.inputs, 1)
    of_slide.interrupted("1 set, 1 worker, killed and resumed", "one", args.kill_after)
    study(folder, of_slide.inputs, 10)
    of_slide.clustered(args.workers)
    one, ten = nuclei(folder / "one"), nuclei(folder / f"cluster-{args.workers}")
    # The first set of both is the same, and the defaults come before it.
    assert one and all(line in ten for line in one), "results differ"
    print(f"{len(one)} responses of the resumed run are among the {len(ten)} of the cluster")


def one_slide(pleach: Path, folder: Path, args: argparse.Namespace) -> None:
    of_slide = Study(pleach, folder, args)
    study(folder, of_slide.inputs, 1)
    of_slide.show("1 set, 1 worker", "one", measured(of_slide.command("one"), folder))
    study(folder, of_slide.inputs, 10)
    ten = measured(of_slide.command("ten"), folder)
    of_slide.show("10 sets, 1 worker", "ten", ten)
    for workers in {1, args.workers}:
        of_slide.clustered(workers)
        assert nuclei(folder / f"cluster-{workers}") == nuclei(folder / "ten"), "results differ"
    of_slide.interrupted("10 sets, 1 worker, killed and resumed", "killed", ten.seconds / 2)
    assert nuclei(folder / "killed") == nuclei(folder / "ten"), "results differ after kill -9"
    if args.single:
        alone = singly(pleach, folder, folder / "slide.tif", args, args.side) * of_slide.tiles
        print(f"tiles run singly: {alone:.1f} s in all; the study takes {ten.seconds / alone:.2f} times as long")
        assert ten.seconds <= 1.2 * alone, "the study takes more than 1.2 times as long as its tiles"


def many_slides(pleach: Path, folder: Path, args: argparse.Namespace) -> None:
    # Small tiles: 10 or more of each slide.
    side, tile = max(2_048, args.side // 10), max(256, args.side // 80)
    for number in range(args.slides):
        command = [pleach, "tissue", "--slide", f"{side}x{side}", "--out", f"s{number}.tif", "--seed", str(number)]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    study(folder, f'slides = ["s*.tif"]\ntile = {tile}\nhalo = {args.halo}', 10)
    (folder / "slide.tif").rename(folder / "large.tiff")
    used = measured([pleach, "run", "study.toml", "--workers", "1", "--quiet", "--out", "many"], folder)
    counts: dict[str, set] = {}
    for line in nuclei(folder / "many"):
        counts.setdefault(line["tile"].split("/")[0], set()).add(line["tile"])
    least = min(map(len, counts.values()))
    print(f"\n{len(counts)} slides of {side} px, {sum(map(len, counts.values()))} tiles of {tile} px (at least {least} a slide), 10 sets: {used.seconds:.1f} s, peak {used.peak_mb:.0f} MB, {used.written_mb:.1f} MB written")
    assert least >= 10, counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=120_000)
    parser.add_argument("--tile", type=int, default=4_096)
    parser.add_argument("--halo", type=int, default=64)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--memory", default="1500MB")
    parser.add_argument("--slides", type=int, default=10)
    parser.add_argument("--single", type=int, default=4, help="tiles to run alone; 0: none")
    parser.add_argument("--brief", action="store_true", help="one set, killed and resumed, and ten sets on the cluster")
    parser.add_argument("--slide", type=Path, help="a slide of `pleach tissue` in place of a new one")
    parser.add_argument("--kill-after", type=float, default=300.0, help="seconds, with --brief")
    parser.add_argument("--pleach", default="target/release/pleach")
    args = parser.parse_args()
    pleach = Path(args.pleach).resolve()
    with tempfile.TemporaryDirectory() as name:
        made(pleach, Path(name), args)
        (brief if args.brief else one_slide)(pleach, Path(name), args)
        if args.slides:
            many_slides(pleach, Path(name), args)


if __name__ == "__main__":
    main()
