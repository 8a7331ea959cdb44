"""Reuse of a hierarchical registration: 004 Table 2 and Fig. 8, by the studies of benches/registration.py."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import chart
import reuse_studies as studies
import welch
from frame import ROOT, Context, Figure, Picture, Result, StepFailed, Table, percent

LEVELS = 5
# Paper 004 Table 2: bytes that identify the result of a hierarchy, as given and minimized. It prints 680 M and 683 M only.
GIVEN = {1: "680 M", 2: "680 M", 5: "683 M"}
MINIMAL = {1: 20, 2: 28, 3: 36, 4: 44, 5: 52}


def bench() -> ModuleType:
    """The script benches/registration.py, which writes studies that end after a level."""
    spec = importlib.util.spec_from_file_location("registration_studies", ROOT / "benches" / "registration.py")
    if spec is None or spec.loader is None:
        raise StepFailed("benches/registration.py: no such file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def side(context: Context) -> int:
    """Side of the tile in pixels, which decides on the volumes."""
    return context.choose(1024, 4096)


def files(context: Context, folder: Path, pixels: int, levels: Iterable[int]) -> list[Path]:
    """Studies of a single evaluation that end after these levels. The tile is kept beside the steps."""
    script = bench()
    kept = context.results / "inputs" / f"registration-{pixels}.png"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        (folder / "tile.png").write_bytes(script.tile(pixels))
        (folder / "tile.png").replace(kept)
    image = kept.read_bytes()
    return [script.study(folder / f"h{level}", level, image) for level in levels]


def table_2(context: Context) -> Result:
    """Paper 004 Table 2."""
    pixels = side(context)

    def compute() -> dict[str, int]:
        with context.folder() as folder:
            found = {}
            for level, file in enumerate(files(context, folder, 256, range(1, LEVELS + 1)), start=1):
                document = json.loads(context.run("explain", file, "--evaluation", 1, "--json").stdout)
                found[str(level)] = document["runs"][0]["key"]["bytes"]
            return found

    keys = context.step("keys of the registration's levels", compute)
    edge = bench().voxels(pixels**2)
    rows = []
    for level in range(1, LEVELS + 1):
        # Two volumes of the level in f32, the transform and the damping.
        inputs = 2 * 4 * (edge // 2 ** (LEVELS - level)) ** 3 + 12 * 8 + 8
        rows.append([f"H{level}", GIVEN.get(level, ""), f"{inputs:,} B", MINIMAL[level], keys[str(level)]])
    return Result(
        columns=["hierarchy", "published, as given", "ours, as given", "published, minimized, B", "ours, minimized, B"],
        rows=rows,
        setting=f"Attributes that identify the result of a level, by `pleach explain`; volumes of {edge}³ voxels (published: 512 × 512 × 295).",
        why="A minimal key here has the digest of the tile (32 bytes) in place of two names (12 bytes), and 8 bytes for each level as in the paper. "
        "As given, a step here reads the volumes of its own resolution, and the paper's function both images at full size. The cache is searched by a hash of 32 bytes at any level.",
    )


def variation(context: Context, level: int) -> dict[str, Any]:
    """Runs the whole registration with a cache that has the levels up to `level`; 0 is a run without a cache."""
    with context.folder() as folder:
        levels = [level, LEVELS] if 0 < level < LEVELS else [LEVELS]
        found = dict(zip(levels, files(context, folder, side(context), levels), strict=True))
        cache = ["--cache", folder / "cache"] if level else []
        if level:
            context.run("run", found[level], "--out", folder / "part", "--quiet", "--workers", 1, *cache)
        command = [context.pleach, "run", found[LEVELS], "--out", folder / "out", "--quiet", "--workers", 1, *cache]
        start = time.monotonic()
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise StepFailed(f"{' '.join(map(str, command))}: exit code {process.returncode}")
        record = json.loads((folder / "out" / "run.json").read_text())
        responses = hashlib.sha256((folder / "out" / "responses.csv").read_bytes()).hexdigest()
        return {
            "seconds": seconds,
            "cpu": used.ru_utime + used.ru_stime,
            "executed": record["tasks_executed"],
            "responses": responses,
        }


def fig_8(context: Context) -> Result:
    """Paper 004 Fig. 8."""
    names = {"no reuse": 0} | {f"L{level}": level for level in range(1, LEVELS + 1)}
    found = context.replicates(
        "registration",
        {name: lambda level=level: variation(context, level) for name, level in names.items()},
        studies.REPLICATES, side=side(context),
    )  # fmt: skip
    studies.check([record for records in found.values() for record in records])
    seconds = {name: [record["seconds"] for record in records] for name, records in found.items()}
    cpu = {name: welch.mean([record["cpu"] for record in records]).mean for name, records in found.items()}
    means = {name: welch.mean(values) for name, values in seconds.items()}
    published = {"no reuse": "540 s", "L5": "27 s, 5 %"}
    rows = [
        [name, published.get(name, ""), f"{means[name]} s, {percent(means[name].mean / means['no reuse'].mean, 0)}",
         f"{cpu[name]:.2f}", found[name][0]["executed"]]
        for name in names
    ]  # fmt: skip
    saved = {f"H{level}": cpu[f"L{level - 1}" if level > 1 else "no reuse"] - cpu[f"L{level}"] for level in range(1, LEVELS + 1)}
    largest = max(saved, key=lambda name: saved[name])
    groups = {name: {"ours": 100 * mean.mean / means["no reuse"].mean} for name, mean in means.items()}
    edge = bench().voxels(side(context) ** 2)
    return Result(
        columns=["variation", "published", "ours", "processor time, s", "tasks executed"],
        rows=rows,
        tables=[
            Table(
                ["", "published", "ours"],
                [
                    ["all levels reused against none", "20 times", f"{welch.speedup(seconds['no reuse'], seconds['L5'])}, {welch.welch(seconds['no reuse'], seconds['L5'])}"],
                    ["level whose reuse saves most", "H3", f"{largest} ({', '.join(f'{name} {value:.2f} s' for name, value in saved.items())} of processor time)".replace("-", "−")],
                ],
            )
        ],
        setting=f"A registration of two generated volumes of {edge}³ voxels in five levels, one evaluation, one worker, {studies.REPLICATES} interleaved replicates. Li has the levels H1 to "
        "Hi in its cache. All variations have equal responses. Published: 512 × 512 × 295 voxels on 16 PCs, about 9 minutes.",
        why="The paper's H3 takes most of its time. Here each level has eight times the voxels of the one before, and the key of H1 also covers making the volumes, which "
        "the paper reads from files. Reading and verifying the cache is a larger part of a run of seconds than of one of 9 minutes.",
        pictures=[Picture("times", "Wall time by reused levels, as a share of no reuse",
                          chart.bars("Registration by reused levels", groups, "wall time, % of no reuse", published={("no reuse", "ours"): 100, ("L5", "ours"): 5}))],
    )  # fmt: skip


FIGURES = [
    Figure("004", "Table 2", "Bytes that identify a result", "planned", table_2),
    Figure("004", "Fig. 8", "Time of the registration by reused levels", "executed", fig_8),
]
