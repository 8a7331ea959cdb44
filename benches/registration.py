#!/usr/bin/env python3
"""Registers two volumes at five levels and prints the figures of paper 004, Table 2 and Fig. 8, beside the published ones.

    benches/registration.py [--pleach target/release/pleach] [--side 2048] [--rounds 3] [--workers 1]

Hierarchy Hi is the registration up to level i. `minimal` are the bytes of the attributes that identify its result: the digest
of the tile and the history of the levels' parameters (`pleach explain`). `inputs` are the bytes of the regions and values that
a step of level i reads. Li is a run with a cache that has the levels up to i. CPU seconds are those of the whole process: on
a shared machine read them, not the seconds. Fails when a response differs.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import struct
import subprocess
import tempfile
import time
import zlib
from pathlib import Path

LEVELS = 5
PUBLISHED_BYTES = [20, 28, 36, 44, 52]
EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "registration"


def tile(side: int) -> bytes:
    """Returns a PNG image of `side` x `side` pixels."""
    step = max(1, side // 7)
    rows = bytearray()
    for y in range(side):
        rows.append(0)
        for x in range(side):
            rows += bytes((x // step * 36 % 256, y // step * 36 % 256, 200 if (x // step + y // step) % 2 else 90))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b"")


def cpu_seconds() -> float:
    """Returns the CPU time of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def voxels(pixels: int) -> int:
    """Returns the side of the volumes of a tile."""
    side = 16
    while (side + 16) ** 3 <= pixels:
        side += 16
    return side


def study(folder: Path, level: int, image: bytes) -> Path:
    """Writes the study of a single evaluation that ends after a level."""
    shutil.copytree(EXAMPLE, folder)
    shutil.rmtree(folder / "tiles")
    (folder / "tiles").mkdir()
    (folder / "tiles" / "seed.png").write_bytes(image)
    stage = json.loads((folder / "registration.json").read_text())
    last = f"transform-{level}"
    stage["outputs"] = [{"region": last, "type": "array-f64"}]
    later = [f"{kind}-{number}" for kind in ("translate", "affine") for number in range(level + 1, LEVELS + 1)]
    stage["tasks"] = [entry for entry in stage["tasks"] if entry.get("loop", entry.get("choice")) not in later]
    (folder / "registration.json").write_text(json.dumps(stage))
    assessment = (folder / "assessment.json").read_text()
    (folder / "assessment.json").write_text(assessment.replace("transform-5", last))
    names = [f"damping-{number}" for number in range(1, level + 1)]
    (folder / "sets.csv").write_text(",".join(names) + "\n" + ",".join("0.05" for _ in names) + "\n")
    text = (folder / "study.toml").read_text()
    before, after = text.split("[method]")
    method = '[method]\nkind = "table"\nfile = "sets.csv"\n[response]'
    (folder / "study.toml").write_text(before + method + after.split("[response]")[1])
    return folder / "study.toml"


def main() -> None:
    """Runs and prints."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pleach", type=Path, default=Path("target/release/pleach"))
    arguments.add_argument("--side", type=int, default=2048)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--workers", default="1")
    given = arguments.parse_args()
    pleach = given.pleach.resolve()

    with tempfile.TemporaryDirectory() as scratch:
        place, image = Path(scratch), tile(given.side)
        studies = [study(place / f"h{level}", level, image) for level in range(1, LEVELS + 1)]
        side = voxels(given.side**2)

        def run(file: Path, out: str, *options: str) -> tuple[tuple[float, float], dict, str]:
            shutil.rmtree(place / out, ignore_errors=True)
            command = [pleach, "run", file, "--out", place / out, "--quiet", "--workers", given.workers, *options]
            begun, used = time.perf_counter(), cpu_seconds()
            subprocess.run(command, check=True)
            seconds = (time.perf_counter() - begun, cpu_seconds() - used)
            record = json.loads((place / out / "run.json").read_text())
            return seconds, record, (place / out / "responses.csv").read_text()

        print(f"Volumes of {side} x {side} x {side} voxels\n")
        print("| hierarchy | inputs, bytes | minimal, bytes | published: inputs | minimal | query of pleach, bytes |")
        print("| --- | --- | --- | --- | --- | --- |")
        for level, (file, published) in enumerate(zip(studies, PUBLISHED_BYTES), start=1):
            text = subprocess.run(
                [pleach, "explain", file, "--evaluation", "1", "--json"], check=True, capture_output=True, text=True
            ).stdout
            key = json.loads(text)["runs"][0]["key"]
            edge = side // 2 ** (LEVELS - level)
            inputs = 2 * 4 * edge**3 + 12 * 8 + 8
            largest = {1: "680 M", LEVELS: "683 M"}.get(level, "-")
            print(f"| H{level} | {inputs:,} | {key['bytes']} | {largest} | {published} | 32 |")

        seconds: dict[int, list[tuple[float, float]]] = {level: [] for level in range(LEVELS + 1)}
        executed: dict[int, int] = {}
        skipped: dict[int, int] = {}
        responses = set()
        for number in range(given.rounds):
            cache = place / f"cache-{number}"
            took, record, response = run(studies[-1], "out")
            seconds[0].append(took)
            executed[0], skipped[0] = record["tasks_executed"], record.get("tasks_skipped", 0)
            responses.add(response)
            for level in range(1, LEVELS + 1):
                # The last level is cached by the run before.
                run(studies[level - 1], "part", "--cache", str(cache))
                copy = place / "copy"
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(cache, copy)
                took, record, response = run(studies[-1], "out", "--cache", str(copy))
                seconds[level].append(took)
                executed[level], skipped[level] = record["tasks_executed"], record.get("tasks_skipped", 0)
                responses.add(response)
        print("\n| variation | seconds (median) | CPU seconds | of no reuse | tasks executed | skipped | published |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        base = statistics.median(used for _, used in seconds[0])
        for level, times in seconds.items():
            median = statistics.median(wall for wall, _ in times)
            used = statistics.median(used for _, used in times)
            published = {0: "540 s", LEVELS: "27 s, 5 %"}.get(level, "-")
            row = f"{median:.2f} | {used:.2f} | {used / base:.0%} | {executed[level]} | {skipped[level]} | {published}"
            print(f"| {'no reuse' if level == 0 else f'L{level}'} | {row} |")
        if len(responses) != 1:
            raise SystemExit(f"the responses differ: {responses}")


if __name__ == "__main__":
    main()
