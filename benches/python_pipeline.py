#!/usr/bin/env python3
"""The functions of examples/python-nuclei with pleach, a plain loop, Dask and joblib, for one MOAT sample on real tiles.

    python3 -m venv venv
    venv/bin/pip install -r examples/python-nuclei/requirements.txt dask distributed joblib
    benches/python_pipeline.py --python venv [--pleach BINARY] [--tiles 4] [--trajectories 11] [--repeat 1] [--json FILE]
    benches/python_pipeline.py --python venv --only dask-tokens pleach-value       # some of the ways, see --help

Tiles are the first PNGs of PLEACH_TEST_DATA/annotated/gbm40. 11 trajectories of 14 parameters are 165 evaluations. pleach
runs once for the sample and the expected responses, then all ways take turns, in reverse order every second time. Numeric
libraries have one thread. Columns are medians:

- wall s: of peers, from the time at which their processes have imported all modules and read the tiles, to the last
  response in the parent process. Of pleach, of its whole process: the start, responses and report included.
- with start s: of peers, with the start of all processes. Of pleach, the same as wall s.
- task s: sum over the runs of the six functions. Of peers, of the function alone. Of pleach, also of the transfer of its
  inputs and outputs, and of the start of interpreters.
- tasks: runs of the six functions.
- times as fast: seconds of the fastest peer by those of this way; the ideal loop is none of the peers.

Exits with 1 if any responses differ: those of pleach by the bytes of responses.csv, those of peers by the bits of each number.
Their texts may differ: of two shortest decimals of equal distance, Rust writes the larger and Python the even one.
"""

from __future__ import annotations

import argparse
import csv
import functools
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/python-nuclei"
LOOP = ROOT / "tests/external/loop.py"
FUNCTIONS = ["deconvolve", "threshold", "clean", "distance", "watershed", "features"]

STUDY = """[study]
name = "python-pipeline"
workflow = "{workflow}"
seed = 1
[input]
tiles = ["{tiles}"]
[method]
kind = "moat"
trajectories = {trajectories}
levels = 8
[response]
metric = "count"
"""

PLEACH = {
    "pleach-none": ["--strategy", "none"],
    "pleach-stage": ["--strategy", "stage"],
    "pleach-tree": ["--reuse", "tree"],
    "pleach-dataflow": ["--reuse", "dataflow"],
    "pleach-value": ["--reuse", "value"],
}

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")}

# Peers keep freed memory for the next array, as in benches/peers: page faults cost time.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}


# The peers, in processes of the interpreter of --python. Modules of its environment are imported in functions.


class Run(NamedTuple):
    """An evaluation of a tile: its file, and the arguments of each of the six functions."""

    tile: str
    arguments: list[dict[str, Any]]


class Outcome(NamedTuple):
    """When the processes were ready and when the last response had come, on the monotonic clock; and the responses."""

    ready: float
    done: float
    tables: list[dict[str, float]]
    tasks: int
    task_seconds: float


class Tally:
    """Runs and seconds of the six functions in this process."""

    runs = 0
    seconds = 0.0


def counted(function: Callable) -> Callable:
    """The function, which adds to the tally."""

    @functools.wraps(function)
    def call(*inputs, **arguments):
        start = time.perf_counter()
        result = function(*inputs, **arguments)
        Tally.seconds += time.perf_counter() - start
        Tally.runs += 1
        return result

    return call


@functools.cache
def modules() -> tuple[ModuleType, ModuleType]:
    """loop.py, and nuclei.py with functions that are counted."""
    import loop
    import nuclei

    for name in FUNCTIONS:
        setattr(nuclei, name, counted(getattr(nuclei, name)))
    return loop, nuclei


@functools.cache
def pixels(tile: str) -> Any:
    """The tile, read once a process."""
    return modules()[0].read_tile(tile)


@functools.cache
def remembered(folder: str) -> SimpleNamespace:
    """The functions of nuclei.py, each with its results in a folder."""
    import joblib

    memory = joblib.Memory(folder, verbose=0)
    return SimpleNamespace(**{name: memory.cache(getattr(modules()[1], name)) for name in FUNCTIONS})


def prepare(tiles: list[str]) -> int:
    """Imports all modules and reads the tiles. Returns the number of this process."""
    for tile in tiles:
        pixels(tile)
    return os.getpid()


def evaluate(run: Run, cache: str | None = None) -> tuple[dict[str, float], int, float]:
    """Returns the responses, and how many functions ran for how many seconds."""
    loop, nuclei = modules()
    functions = remembered(cache) if cache else nuclei
    runs, seconds = Tally.runs, Tally.seconds
    table = loop.evaluate(functions, pixels(run.tile), *run.arguments)
    return table, Tally.runs - runs, Tally.seconds - seconds


def plain_loop(runs: list[Run], tiles: list[str], job: dict) -> Outcome:
    """One process, without reuse."""
    prepare(tiles)
    ready = time.monotonic()
    tables, tasks, seconds = zip(*map(evaluate, runs), strict=True)
    return Outcome(ready, time.monotonic(), list(tables), sum(tasks), sum(seconds))


def joblib_memory(runs: list[Run], tiles: list[str], job: dict) -> Outcome:
    """Processes that share the results of each function in a folder."""
    from joblib import Parallel, delayed

    cache = str(Path(job["scratch"]) / "cache")
    with Parallel(n_jobs=job["workers"]) as parallel:
        processes: set[int] = set()
        while len(processes) < job["workers"]:
            processes.update(parallel(delayed(prepare)(tiles) for _ in range(job["workers"])))
        ready = time.monotonic()
        results = parallel(delayed(evaluate)(run, cache) for run in runs)
        done = time.monotonic()
    tables, tasks, seconds = zip(*results, strict=True)
    return Outcome(ready, done, list(tables), sum(tasks), sum(seconds))


def dask_cluster(compute: Callable, runs: list[Run], tiles: list[str], job: dict) -> Outcome:
    """Processes of one thread. `compute` returns the responses."""
    import dask
    from distributed import Client, LocalCluster

    # In place of Dask's own variables, by which workers return freed memory at once.
    variables = {"distributed.nanny.pre-spawn-environ": ONE_THREAD | KEEP_MEMORY}
    dask.config.set(variables | {"temporary-directory": job["scratch"]})
    with (
        LocalCluster(n_workers=job["workers"], threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(job["workers"])
        client.run(prepare, tiles)
        ready = time.monotonic()
        tables = compute(client, runs)
        done = time.monotonic()
        tallies = client.run(tally).values()
    tasks, seconds = zip(*tallies, strict=True)
    return Outcome(ready, done, tables, sum(tasks), sum(seconds))


def tally() -> tuple[int, float]:
    """Runs and seconds of the six functions in this process."""
    return Tally.runs, Tally.seconds


def whole_evaluations(client: Any, runs: list[Run]) -> list[dict[str, float]]:
    """One Dask task for each evaluation of a tile."""
    return [table for table, _, _ in client.gather(client.map(evaluate, runs, pure=False))]


def tokenized_tasks(client: Any, runs: list[Run]) -> list[dict[str, float]]:
    """One Dask task for each distinct function, arguments and input tasks: equal ones have the same token."""
    import dask

    pure = {function.__name__: dask.delayed(function, pure=True) for function in TASKS}
    tables = []
    for tile, (deconvolve, threshold, clean, distance, watershed, features) in runs:
        hematoxylin = pure["deconvolve_task"](tile, **deconvolve)
        mask = pure["threshold_task"](hematoxylin, **threshold)
        cleaned = pure["clean_task"](mask, **clean)
        heights = pure["distance_task"](cleaned, **distance)
        labels = pure["watershed_task"](heights, cleaned, **watershed)
        tables.append(pure["features_task"](labels, hematoxylin, **features))
    return client.gather(client.compute(tables))


# The lines of `evaluate` in loop.py, as functions.


def deconvolve_task(tile, **arguments):
    loop, nuclei = modules()
    return loop.read_only(nuclei.deconvolve(pixels(tile), **arguments))


def threshold_task(hematoxylin, **arguments):
    loop, nuclei = modules()
    return loop.as_mask(nuclei.threshold(hematoxylin, **arguments))


def clean_task(mask, **arguments):
    loop, nuclei = modules()
    return loop.as_mask(nuclei.clean(mask, **arguments))


def distance_task(cleaned, **arguments):
    loop, nuclei = modules()
    return loop.read_only(nuclei.distance(cleaned, **arguments))


def watershed_task(heights, cleaned, **arguments):
    loop, nuclei = modules()
    return loop.read_only(nuclei.watershed(heights, cleaned, **arguments).astype("uint32"))


def features_task(labels, hematoxylin, **arguments):
    return modules()[1].features(labels, hematoxylin, **arguments)


TASKS = [deconvolve_task, threshold_task, clean_task, distance_task, watershed_task, features_task]

PEERS = {
    "loop": plain_loop,
    "dask-evaluations": functools.partial(dask_cluster, whole_evaluations),
    "dask-tokens": functools.partial(dask_cluster, tokenized_tasks),
    "joblib-memory": joblib_memory,
}


def peer(job: dict) -> None:
    """Evaluates the sample, writes the responses, and prints the measurements."""
    loop, _ = modules()
    tasks = loop.described_tasks(EXAMPLE)
    with open(job["samples"], newline="") as file:
        rows = list(csv.DictReader(file))
    tiles = job["tiles"]
    runs = []
    for row in rows:
        arguments = [task.arguments(row) for task in tasks.values()]
        runs += [Run(tile, arguments) for tile in tiles]
    outcome = PEERS[job["way"]](runs, tiles, job)
    names = [(row["evaluation"], Path(tile).stem) for row in rows for tile in tiles]
    with open(job["out"], "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["evaluation", "tile", *outcome.tables[0]])
        for name, table in zip(names, outcome.tables, strict=True):
            writer.writerow([*name, *map(loop.shortest, table.values())])
    print(
        json.dumps(
            {
                "wall_seconds": outcome.done - outcome.ready,
                "with_start_seconds": outcome.done - job["started"],
                "task_seconds": outcome.task_seconds,
                "tasks": outcome.tasks,
            }
        )
    )


# The driver, of the standard library only.

MEASURES = ["wall_seconds", "with_start_seconds", "task_seconds", "tasks"]


class Bench(NamedTuple):
    """What all ways have in common."""

    folder: Path
    pleach: Path
    python: Path
    workers: int
    tiles: list[Path]

    def call(self, command: list[object], more: dict[str, str] | None = None) -> str:
        """Standard output of a command. Ends the program if it fails."""
        variables = os.environ | ONE_THREAD | (more or {})
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, cwd=self.folder, env=variables
        )
        if done.returncode != 0:
            sys.exit(f"{command[0]} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def versions(self) -> dict[str, str]:
        """Versions of the libraries in the environment."""
        program = (
            "import json, importlib.metadata as m, platform\n"
            "names = ['numpy', 'scipy', 'scikit-image', 'dask', 'distributed', 'joblib']\n"
            "print(json.dumps({'python': platform.python_version()} | {name: m.version(name) for name in names}))"
        )
        return json.loads(self.call([self.python, "-c", program]))

    def run_pleach(self, options: list[str], out: Path) -> dict[str, float]:
        """One run of pleach."""
        command = [self.pleach, "run", "study.toml", "--python", self.python, "--workers", self.workers, "--quiet"]
        start = time.monotonic()
        self.call([*command, *options, "--out", out, "--overwrite"])
        wall = time.monotonic() - start
        record = json.loads((out / "run.json").read_text())
        if record["failed"] > 0:
            sys.exit(f"{record['failed']} runs of pleach failed, see {out}")
        calls = [operation for operation in record["operations"] if operation["name"].startswith("python:")]
        return {
            "wall_seconds": wall,
            "with_start_seconds": wall,
            "task_seconds": sum(operation["seconds"] for operation in calls),
            "tasks": sum(operation["runs"] for operation in calls),
        }

    def run_peer(self, way: str, samples: Path, out: Path) -> dict[str, float]:
        """One run of a peer."""
        path = os.pathsep.join(str(folder) for folder in (Path(__file__).resolve().parent, LOOP.parent, EXAMPLE))
        variables = KEEP_MEMORY | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        program = "import json, python_pipeline, sys; python_pipeline.peer(json.loads(sys.argv[1]))"
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            job = {
                "way": way,
                "samples": str(samples),
                "out": str(out),
                "tiles": [str(tile) for tile in self.tiles],
                "workers": self.workers,
                "scratch": scratch,
                "started": time.monotonic(),
            }
            printed = self.call([self.python, "-c", program, json.dumps(job)], variables)
        return json.loads(printed.splitlines()[-1])

    def run(self, way: str, samples: Path) -> tuple[dict[str, float], bytes]:
        """Measurements and responses of a way."""
        out = self.folder / way
        if way in PLEACH:
            measured = self.run_pleach(PLEACH[way], out)
            return measured, (out / "responses.csv").read_bytes()
        out.mkdir(exist_ok=True)
        measured = self.run_peer(way, samples, out / "responses.csv")
        return measured, (out / "responses.csv").read_bytes()


def bits(responses: bytes) -> list[list[str]]:
    """Responses with each number in an exact form."""
    header, *rows = csv.reader(responses.decode().splitlines())
    return [header, *([evaluation, tile, *(float(value).hex() for value in row)] for evaluation, tile, *row in rows)]


def medians(rounds: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Median of each measure, by way."""
    return {
        way: {measure: statistics.median(one[measure] for one in measured) for measure in MEASURES}
        for way, measured in rounds.items()
    }


def table(rows: dict[str, dict[str, float]], workers: int, all_tasks: int) -> str:
    """The table of medians, with the loop on all cores as it would be at best."""
    peers = [row for way, row in rows.items() if way in PEERS]
    lines = [
        "| way | wall s | times as fast | with start s | times as fast | task s | tasks | of all |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    shown = []
    for way, row in rows.items():
        shown.append((way, row))
        if way == "loop":
            ideal = {measure: row[measure] / workers for measure in ("wall_seconds", "with_start_seconds")}
            shown.append((f"loop / {workers}, ideal", row | ideal))
    for way, row in shown:
        cells = []
        for measure in ("wall_seconds", "with_start_seconds"):
            least = min((one[measure] for one in peers), default=None)
            cells += [f"{row[measure]:.2f}", "-" if least is None else f"{least / row[measure]:.2f}"]
        cells += [f"{row['task_seconds']:.2f}", f"{row['tasks']:,.0f}", f"{100 * row['tasks'] / all_tasks:.1f} %"]
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def options_given() -> argparse.Namespace:
    """Options of the command line."""
    ways = [*PEERS, *PLEACH]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pleach", type=Path, default=ROOT / "target/release/pleach", metavar="BINARY")
    parser.add_argument(
        "--python",
        type=Path,
        default=os.environ.get("PLEACH_PYTHON", sys.executable),
        metavar="ENV",
        help="folder of a virtual environment, or an interpreter (default: PLEACH_PYTHON, or this interpreter)",
    )
    parser.add_argument("--tiles", type=int, default=4, metavar="N")
    parser.add_argument("--trajectories", type=int, default=11, metavar="N")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="rounds, of which the medians are printed")
    parser.add_argument("--only", nargs="+", choices=ways, default=ways, metavar="NAME", help=", ".join(ways))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers of all rounds")
    return parser.parse_args()


def main() -> int:
    """Measures and compares."""
    given = options_given()
    data = Path(os.environ.get("PLEACH_TEST_DATA", ROOT / "../shared/data")).resolve()
    tiles = sorted((data / "annotated/gbm40").glob("gbm40_[0-9][0-9].png"))[: given.tiles]
    if len(tiles) < given.tiles:
        sys.exit(f"{data}/annotated/gbm40 has {len(tiles)} of {given.tiles} tiles; set PLEACH_TEST_DATA")
    # Not resolved: the link to an interpreter names its environment.
    python = given.python.absolute()
    python = python / "bin/python" if python.is_dir() else python
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(folder, given.pleach.resolve(), python, given.workers, tiles)
        versions = bench.versions() | {"pleach": bench.call([bench.pleach, "--version"]).split()[-1]}
        workflow, joined = EXAMPLE / "workflow.json", '", "'.join(map(str, tiles))
        study = STUDY.format(workflow=workflow, tiles=joined, trajectories=given.trajectories)
        (folder / "study.toml").write_text(study)
        first = folder / "first"
        bench.run_pleach([], first)
        expected = (first / "responses.csv").read_bytes()
        runs = expected.count(b"\n") - 1
        all_tasks = runs * len(FUNCTIONS)
        print(
            f"MOAT of {given.trajectories} trajectories: {runs // len(tiles)} evaluations of {len(tiles)} tiles, {runs} runs, "
            f"{all_tasks} tasks; {given.workers} workers, {os.cpu_count()} processors, medians of {given.repeat}"
        )
        print(", ".join(f"{name} {version}" for name, version in versions.items()), flush=True)

        ways = [way for way in [*PEERS, *PLEACH] if way in given.only]
        rounds: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        differing = set()
        for number in range(given.repeat):
            for way in reversed(ways) if number % 2 else ways:
                measured, responses = bench.run(way, first / "samples.csv")
                rounds[way].append(measured)
                print(f"round {number + 1}: {way} {measured['wall_seconds']:.2f} s", file=sys.stderr, flush=True)
                if responses != expected and (way in PLEACH or bits(responses) != bits(expected)):
                    differing.add(way)

    rows = medians(rounds)
    print(f"\n{table(rows, given.workers, all_tasks)}\n")
    digest = hashlib.sha256(expected).hexdigest()
    verdict = f"responses differ: {', '.join(sorted(differing))}" if differing else "all responses are equal"
    print(f"{verdict}; SHA-256 of pleach's: {digest[:16]}")
    if given.json:
        record = {
            "evaluations": runs // len(tiles),
            "trajectories": given.trajectories,
            "tiles": [tile.stem for tile in tiles],
            "runs": runs,
            "tasks_without_reuse": all_tasks,
            "workers": given.workers,
            "processors": os.cpu_count(),
            "versions": versions,
            "responses_sha256": digest,
            "differing": sorted(differing),
            "medians": rows,
            "rounds": rounds,
        }
        given.json.write_text(json.dumps(record, indent=2) + "\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
