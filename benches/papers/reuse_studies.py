"""Studies of the papers' size for this machine: files of tiles and studies, whole runs with their times, and plans."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import subprocess
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import reuse_designs as designs
from frame import Context, StepFailed

# The papers' versions of the application. MaxBucketSize is 7 (000 §4.2.1).
SIZE = 7
STRATEGIES = {
    "no reuse": ["--strategy", "none"],
    "stage level": ["--strategy", "stage"],
    "Naïve": ["--strategy", "naive", "--reuse", "tree", "--max-bucket-size", str(SIZE)],
    "SCA": ["--strategy", "sca", "--reuse", "tree", "--max-bucket-size", str(SIZE)],
    "RTMA": ["--strategy", "rtma", "--reuse", "tree", "--max-bucket-size", str(SIZE)],
    "pleach's default": [],
}
# SCA cuts the graph of all pairs of instances. pleach refuses it beyond this number of instances of a tile.
SCA_LIMIT = 200

# Replicates of wall time (000 §4.1: at least 5).
REPLICATES = 5

OPERATIONS = {
    "nuclei.background": "t1",
    "nuclei.reconstruct": "t2",
    "nuclei.candidates": "t3",
    "nuclei.candidate-area": "t4",
    "nuclei.nuclei": "t5",
    "nuclei.separate": "t6",
    "nuclei.final-area": "t7",
}


def study(tiles: str, method: Mapping[str, Any], parameters: Mapping[str, Mapping[str, Any]] | None = None, seed: int = 500) -> str:
    """A study file: Dice against the result of the default parameters, with normalization, as in the papers."""
    lines = ["[study]", 'name = "paper"', 'workflow = "nuclei"', f"seed = {seed}", "[input]", f'tiles = ["{tiles}"]']
    lines += ["normalize = true", 'reference = "defaults"', "[method]", *assignments(method), "[response]", 'metric = "dice"']
    for name, settings in (parameters or {}).items():
        lines += [f"[parameters.{name}]", *assignments(settings)]
    return "\n".join(lines) + "\n"


def assignments(settings: Mapping[str, Any]) -> list[str]:
    """Lines of a TOML table. Text, numbers and lists are written as JSON, which TOML reads."""
    return [f"{name} = {json.dumps(value)}" for name, value in settings.items()]


def moat(evaluations: int, **further: Any) -> dict[str, Any]:
    """MOAT of the 15 parameters from base points of Halton's sequence: 16 evaluations a trajectory, 20 levels."""
    return {"kind": "moat", "trajectories": evaluations // 16, "levels": 20, "base": "halton", **further}


def eight(names: Sequence[str] = designs.EIGHT) -> dict[str, dict[str, Any]]:
    """Settings of a decomposition: these parameters over the authors' ranges in steps of 1, the others at their defaults.

    Connectivities are 4 or 8: pleach refuses those between.
    """
    settings: dict[str, dict[str, Any]] = {}
    for name, low, high, truncated in designs.PARAMETERS:
        if name not in names:
            settings[name] = {"fixed": designs.DEFAULTS[name]}
        elif not truncated:
            settings[name] = {"distribution": "uniform", "range": [low, high]}
        elif (low, high) != (4.0, 8.0):
            settings[name] = {"range": [int(low), int(high)], "step": 1}
    return settings


def tissue(context: Context, side: int, count: int = 1) -> Path:
    """A folder with generated tissue, kept beside the steps: `count` tiles of `side` × `side` pixels."""
    folder = context.results / "inputs" / f"tissue-{side}-{count}"
    if not folder.is_dir():
        with context.folder() as scratch:
            made = scratch / "tiles"
            context.run("tissue", "--out", made, "--size", side, "--count", count, "--seed", 3)
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(made, folder)
    return folder


def tile(context: Context, kind: str = "MOAT") -> tuple[Path, str, Any]:
    """The tile of wall times: path, words for the document, and its identity for keys.

    Quick: generated, 640 px. Full: generated, 1,024 px; for VBD annotated glioblastoma of 512 px, if the data is present.
    """
    if kind == "VBD" and not context.quick and context.data:
        file = context.data / "annotated" / "gbm40" / "gbm40_03.png"
        return file, "an annotated glioblastoma tile of 512 × 512 px (gbm40_03)", "gbm40_03"
    side = context.choose(640, 512 if kind == "VBD" else 1024)
    path = tissue(context, side) / "tissue_01.png"
    return path, f"a tile of generated tissue of {side:,} × {side:,} px", f"tissue {side}"


def run(context: Context, tiles: Sequence[Path], text: str, options: Sequence[Any], workers: int | None = None) -> dict[str, Any]:
    """Runs a study on these tiles in a folder of its own. `text` has "tiles/*" for them.

    Returns seconds of the whole process (`seconds`), of planning, of execution, of all processors (`cpu`), of tasks by
    operation (`tasks`: executions and seconds), counts and bytes of run.json, and a digest of the responses.
    """
    with context.folder() as folder:
        (folder / "tiles").mkdir()
        for path in tiles:
            (folder / "tiles" / path.name).symlink_to(path.resolve())
        (folder / "study.toml").write_text(text)
        command = [context.pleach, "run", folder / "study.toml", "--out", folder / "out", "--quiet"]
        command += ["--workers", workers or context.cores, *options]
        with (folder / "log").open("w+") as log:
            start = time.monotonic()
            process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.monotonic() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            if status != 0:
                log.seek(0)
                raise StepFailed(f"{' '.join(map(str, command))}: {log.read().strip()[-500:]}")
        record = json.loads((folder / "out" / "run.json").read_text())
        responses = hashlib.sha256((folder / "out" / "responses.csv").read_bytes()).hexdigest()
        indices = folder / "out" / "indices.json"
        return {
            "seconds": seconds,
            "cpu": used.ru_utime + used.ru_stime,
            "planning": record["planning_seconds"],
            "execution": record["execution_seconds"],
            "evaluations": record["evaluations"],
            "executed": record["tasks_executed"],
            "reused": record["tasks_reused"],
            "tasks": {found["name"]: [found["runs"], found["seconds"]] for found in record["operations"]},
            "admitted": record["peak_bytes_admitted"],
            "resident": record["peak_rss_bytes"],
            "responses": responses,
            "indices": json.loads(indices.read_text()) if indices.is_file() else None,
        }


def check(records: Sequence[Mapping[str, Any]]) -> None:
    """Raises ValueError if responses differ: all versions of the application have the same result."""
    if len({record["responses"] for record in records}) > 1:
        raise ValueError("the responses of the versions differ")


def plan(context: Context, name: str, sets: Sequence[designs.Set], *options: Any, side: int = 4096) -> dict[str, Any]:
    """A step: the plan of parameter sets on a tile of `side` × `side` pixels, as `pleach plan --json` prints it.

    `name` identifies the sets.
    """

    def compute() -> dict[str, Any]:
        with context.folder() as folder:
            (folder / "tile.png").symlink_to(blank(context, side))
            designs.write(folder / "sets.csv", sets)
            text = study("tile.png", {"kind": "table", "file": "sets.csv"})
            (folder / "study.toml").write_text(text)
            planned = context.run("plan", folder / "study.toml", "--any-values", "--json", *options)
            return json.loads(planned.stdout)["plans"][0]

    shown = " ".join(map(str, options))
    identity = hashlib.sha256(json.dumps(list(sets)).encode()).hexdigest()
    return context.step(f"plan of {name}, {side} px, {shown}", compute, sets=identity)


def segmentation(planned: Mapping[str, Any]) -> Mapping[str, Any]:
    """The segmentation stage of a plan."""
    return next(stage for stage in planned["per_stage"] if stage["stage"] == "segmentation")


def blank(context: Context, side: int) -> Path:
    """A black PNG image, which plans need for its size only. It is kept beside the steps."""
    path = context.results / "inputs" / f"blank-{side}.png"
    if path.is_file():
        return path
    row = bytes(1 + 3 * side)
    packer = zlib.compressobj(1)
    data = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    with context.folder() as folder:
        made = folder / "blank.png"
        made.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b""))
        path.parent.mkdir(parents=True, exist_ok=True)
        made.replace(path)
    return path
