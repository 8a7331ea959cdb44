#!/usr/bin/env python3
"""The functions of an example with pleach, a plain loop, Dask and joblib, for one MOAT sample on real tiles.

    python3 -m venv venv
    venv/bin/pip install -r examples/pixel-classifier/requirements.txt dask distributed joblib
    benches/python_pipeline.py --python venv [--pleach BINARY] [--tiles 4] [--repeat 1] [--json FILE]
    benches/python_pipeline.py --python venv --pipeline classifier                 # instead of nuclei
    benches/python_pipeline.py --python venv --only dask-tokens pleach-value       # some of the ways, see --help

Pipelines are examples/python-nuclei and examples/pixel-classifier. Tiles are the first PNGs of
PLEACH_TEST_DATA/annotated/gbm40. The classifier is trained on two of the others. 11 trajectories of 14 parameters are 165
evaluations, 13 of 11 parameters are 156. pleach runs once for the sample and the expected responses, then all ways take
turns, in reverse order every second time. Numeric libraries have one thread. With --first N, the two peers without reuse
evaluate the first N parameter sets only, and their times and tasks are multiplied. Columns are medians:

- wall s: of peers, from the time at which their processes have imported all modules and read the tiles, to the last
  response in the parent process. Of pleach, of its whole process: the start, responses and report included.
- with start s: of peers, with the start of all processes. Of pleach, the same as wall s.
- task s: sum over the runs of the functions. Of peers, of the function alone. Of pleach, also of the transfer of its
  inputs and outputs, and of the start of interpreters.
- cpu s: processor time of all processes of the way, with their start. Other programs on the machine disturb it least.
- tasks: runs of the functions.
- times as fast: seconds of the fastest peer by those of this way; the ideal loop is none of the peers.

Exits with 1 if any responses differ: those of pleach by the bytes of responses.csv, those of peers by the bits of each number.
Their texts may differ: of two shortest decimals of equal distance, Rust writes the larger and Python the even one.
"""

from __future__ import annotations

import argparse
import copy
import csv
import functools
import hashlib
import inspect
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LOOP = ROOT / "tests/external/loop.py"


class Pipeline(NamedTuple):
    """An example, the response that a study analyzes, trajectories of about 160 evaluations, and tiles to train on."""

    example: Path
    metric: str
    trajectories: int
    training: list[str]


PIPELINES = {
    "nuclei": Pipeline(ROOT / "examples/python-nuclei", "count", 11, []),
    "classifier": Pipeline(ROOT / "examples/pixel-classifier", "f1", 13, ["gbm40_07.png", "gbm40_08.png"]),
}

STUDY = """[study]
name = "python-pipeline"
workflow = "{workflow}"
seed = 1
[input]
tiles = ["{tiles}"]
{reference}[method]
kind = "moat"
trajectories = {trajectories}
levels = 8
[response]
metric = "{metric}"
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
    """An evaluation of a tile: its file, and the arguments of each task."""

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
    """Runs and seconds of the functions in this process."""

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
def loop() -> ModuleType:
    """loop.py."""
    import loop

    return loop


@functools.cache
def tasks(example: str) -> list[Any]:
    """The tasks of loop.py, with functions that are counted."""
    found = loop().described_tasks(Path(example))
    for task in found:
        task.function = counted(task.function)
    return found


@functools.cache
def inputs(tile: str, references: str | None) -> dict[str, Any]:
    """The pixels of the tile and its reference, read once a process."""
    return loop().read_inputs(Path(tile), references and Path(references))


@functools.cache
def remembered(example: str, folder: str) -> list[Any]:
    """The tasks, with the results of each function in a folder. The result of a setup is not part of the key."""
    import joblib

    memory = joblib.Memory(folder, verbose=0)
    found = [copy.copy(task) for task in tasks(example)]
    for task in found:
        first = next(iter(inspect.signature(task.function).parameters))
        task.function = memory.cache(task.function, ignore=[first] if task.setup else [])
    return found


def prepare(job: dict) -> int:
    """Imports all modules, loads models and reads the tiles. Returns the number of this process."""
    for task in tasks(job["example"]):
        if task.setup:
            loop().set_up(task.setup)
    for tile in job["tiles"]:
        inputs(tile, job["references"])
    return os.getpid()


def evaluate(run: Run, job: dict, cache: str | None = None) -> tuple[dict[str, float], int, float]:
    """Returns the responses, and how many functions ran for how many seconds."""
    called = remembered(job["example"], cache) if cache else tasks(job["example"])
    runs, seconds = Tally.runs, Tally.seconds
    table = loop().evaluate(called, inputs(run.tile, job["references"]), run.arguments)
    return table, Tally.runs - runs, Tally.seconds - seconds


def plain_loop(runs: list[Run], job: dict) -> Outcome:
    """One process, without reuse."""
    prepare(job)
    ready = time.monotonic()
    tables, called, seconds = zip(*(evaluate(run, job) for run in runs), strict=True)
    return Outcome(ready, time.monotonic(), list(tables), sum(called), sum(seconds))


def joblib_memory(runs: list[Run], job: dict) -> Outcome:
    """Processes that share the results of each function in a folder."""
    from joblib import Parallel, delayed

    cache = str(Path(job["scratch"]) / "cache")
    with Parallel(n_jobs=job["workers"]) as parallel:
        processes: set[int] = set()
        while len(processes) < job["workers"]:
            processes.update(parallel(delayed(prepare)(job) for _ in range(job["workers"])))
        ready = time.monotonic()
        results = parallel(delayed(evaluate)(run, job, cache) for run in runs)
        done = time.monotonic()
    tables, called, seconds = zip(*results, strict=True)
    return Outcome(ready, done, list(tables), sum(called), sum(seconds))


def dask_cluster(compute: Callable, runs: list[Run], job: dict) -> Outcome:
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
        client.run(prepare, job)
        ready = time.monotonic()
        tables = compute(client, runs, job)
        done = time.monotonic()
        tallies = client.run(tally).values()
    called, seconds = zip(*tallies, strict=True)
    return Outcome(ready, done, tables, sum(called), sum(seconds))


def tally() -> tuple[int, float]:
    """Runs and seconds of the functions in this process."""
    return Tally.runs, Tally.seconds


def whole_evaluations(client: Any, runs: list[Run], job: dict) -> list[dict[str, float]]:
    """One Dask task for each evaluation of a tile."""
    return [table for table, _, _ in client.gather(client.map(evaluate, runs, job=job, pure=False))]


def tokenized_tasks(client: Any, runs: list[Run], job: dict) -> list[dict[str, float]]:
    """One Dask task for each distinct function, arguments and input tasks: equal ones have the same token."""
    import dask

    pure, described = dask.delayed(one_task, pure=True), tasks(job["example"])
    tables = []
    for tile, arguments in runs:
        regions = {name: TileRegion(tile, name, job["references"]) for name in ("tile", "reference")}
        for number, (task, keywords) in enumerate(zip(described, arguments, strict=True)):
            [output] = task.writes
            regions[output] = pure(job["example"], number, keywords, *(regions[name] for name in task.reads))
        tables.append(regions[output])
    return client.gather(client.compute(tables))


class TileRegion(NamedTuple):
    """A region that each process reads by itself."""

    tile: str
    name: str
    references: str | None

    def __dask_tokenize__(self) -> tuple:
        return tuple(self)


def one_task(example: str, number: int, keywords: dict[str, Any], *regions: Any) -> Any:
    """Runs a task."""
    # Dask passes named tuples as tuples in some versions.
    read = [inputs(region[0], region[2])[region[1]] if isinstance(region, tuple) else region for region in regions]
    return tasks(example)[number].call(read, keywords)[0]


PEERS = {
    "loop": plain_loop,
    "dask-evaluations": functools.partial(dask_cluster, whole_evaluations),
    "dask-tokens": functools.partial(dask_cluster, tokenized_tasks),
    "joblib-memory": joblib_memory,
}


def peer(job: dict) -> None:
    """Evaluates the sample, writes the responses, and prints the measurements."""
    described = tasks(job["example"])
    with open(job["samples"], newline="") as file:
        rows = list(csv.DictReader(file))[: job["first"]]
    tiles = job["tiles"]
    runs = []
    for row in rows:
        arguments = [task.arguments(row) for task in described]
        runs += [Run(tile, arguments) for tile in tiles]
    outcome = PEERS[job["way"]](runs, job)
    names = [(row["evaluation"], Path(tile).stem) for row in rows for tile in tiles]
    responses = [(*name, table) for name, table in zip(names, outcome.tables, strict=True)]
    loop().write_responses(Path(job["out"]), responses)
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

MEASURES = ["wall_seconds", "with_start_seconds", "task_seconds", "cpu_seconds", "tasks"]

# Peers that evaluate each parameter set by itself, so that their time is proportional to the number of sets.
WITHOUT_REUSE = ["loop", "dask-evaluations"]


class Bench(NamedTuple):
    """What all ways have in common."""

    folder: Path
    pleach: Path
    python: Path
    workers: int
    example: Path
    tiles: list[Path]
    references: Path | None
    first: int | None

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
            "names = ['numpy', 'scipy', 'scikit-image', 'scikit-learn', 'dask', 'distributed', 'joblib']\n"
            "print(json.dumps({'python': platform.python_version()} | {name: m.version(name) for name in names if "
            "any(m.distributions(name=name))}))"
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
        path = os.pathsep.join(str(folder) for folder in (Path(__file__).resolve().parent, LOOP.parent, self.example))
        variables = KEEP_MEMORY | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        program = "import json, python_pipeline, sys; python_pipeline.peer(json.loads(sys.argv[1]))"
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            job = {
                "way": way,
                "samples": str(samples),
                "out": str(out),
                "example": str(self.example),
                "tiles": [str(tile) for tile in self.tiles],
                "references": self.references and str(self.references),
                "workers": self.workers,
                "first": self.first if way in WITHOUT_REUSE else None,
                "scratch": scratch,
                "started": time.monotonic(),
            }
            printed = self.call([self.python, "-c", program, json.dumps(job)], variables)
        return json.loads(printed.splitlines()[-1])

    def run(self, way: str, samples: Path) -> tuple[dict[str, float], bytes]:
        """Measurements and responses of a way."""
        out = self.folder / way
        before = processor_seconds()
        if way in PLEACH:
            measured = self.run_pleach(PLEACH[way], out)
        else:
            out.mkdir(exist_ok=True)
            measured = self.run_peer(way, samples, out / "responses.csv")
        measured["cpu_seconds"] = processor_seconds() - before
        return measured, (out / "responses.csv").read_bytes()


def processor_seconds() -> float:
    """Processor time of all processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
        "| way | wall s | times as fast | with start s | times as fast | task s | cpu s | tasks | of all |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
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
        cells += [f"{row['task_seconds']:.2f}", f"{row['cpu_seconds']:.2f}", f"{row['tasks']:,.0f}", f"{100 * row['tasks'] / all_tasks:.1f} %"]
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
    parser.add_argument("--pipeline", choices=PIPELINES, default="nuclei")
    parser.add_argument("--tiles", type=int, default=4, metavar="N")
    parser.add_argument("--trajectories", type=int, metavar="N", help="default: about 160 evaluations")
    parser.add_argument("--first", type=int, metavar="N", help="parameter sets of peers without reuse (default: all)")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="rounds, of which the medians are printed")
    parser.add_argument("--only", nargs="+", choices=ways, default=ways, metavar="NAME", help=", ".join(ways))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers of all rounds")
    return parser.parse_args()


def main() -> int:
    """Measures and compares."""
    given = options_given()
    data = Path(os.environ.get("PLEACH_TEST_DATA", ROOT / "../shared/data")).resolve()
    pipeline, annotated = PIPELINES[given.pipeline], data / "annotated/gbm40"
    trajectories = given.trajectories or pipeline.trajectories
    tiles = [tile for tile in sorted(annotated.glob("gbm40_[0-9][0-9].png")) if tile.name not in pipeline.training]
    tiles = tiles[: given.tiles]
    if len(tiles) < given.tiles:
        sys.exit(f"{data}/annotated/gbm40 has {len(tiles)} of {given.tiles} tiles; set PLEACH_TEST_DATA")
    # Not resolved: the link to an interpreter names its environment.
    python = given.python.absolute()
    python = python / "bin/python" if python.is_dir() else python
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        example, references = folder / "example", annotated if pipeline.training else None
        shutil.copytree(pipeline.example, example, ignore=shutil.ignore_patterns(".*", "__pycache__", "model.joblib"))
        bench = Bench(folder, given.pleach.resolve(), python, given.workers, example, tiles, references, given.first)
        if pipeline.training:
            print(bench.call([python, example / "train.py", *(annotated / name for name in pipeline.training)]), end="")
        versions = bench.versions() | {"pleach": bench.call([bench.pleach, "--version"]).split()[-1]}
        values = {
            "workflow": example / "workflow.json",
            "tiles": '", "'.join(map(str, tiles)),
            "reference": f'reference = "{references}"\n' if references else "",
            "trajectories": trajectories,
            "metric": pipeline.metric,
        }
        (folder / "study.toml").write_text(STUDY.format(**values))
        first = folder / "first"
        bench.run_pleach([], first)
        expected = (first / "responses.csv").read_bytes()
        runs = expected.count(b"\n") - 1
        workflow = json.loads((example / "workflow.json").read_text())
        stages = [json.loads((example / stage["descriptor"]).read_text()) for stage in workflow["stages"]]
        all_tasks = runs * sum(len(stage["tasks"]) for stage in stages)
        print(
            f"{given.pipeline}: MOAT of {trajectories} trajectories: {runs // len(tiles)} evaluations of {len(tiles)} tiles, {runs} runs, "
            f"{all_tasks} tasks; {given.workers} workers, {os.cpu_count()} processors, medians of {given.repeat}"
        )
        print(", ".join(f"{name} {version}" for name, version in versions.items()), flush=True)

        ways = [way for way in [*PEERS, *PLEACH] if way in given.only]
        rounds: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        differing = set()
        for number in range(given.repeat):
            for way in reversed(ways) if number % 2 else ways:
                measured, responses = bench.run(way, first / "samples.csv")
                compared = expected
                if given.first and way in WITHOUT_REUSE:
                    lines = expected.splitlines(keepends=True)[: 1 + given.first * len(tiles)]
                    factor, compared = runs / (len(lines) - 1), b"".join(lines)
                    measured = {measure: factor * value for measure, value in measured.items()}
                rounds[way].append(measured)
                print(f"round {number + 1}: {way} {measured['wall_seconds']:.2f} s", file=sys.stderr, flush=True)
                if responses != compared and (way in PLEACH or bits(responses) != bits(compared)):
                    differing.add(way)

    rows = medians(rounds)
    print(f"\n{table(rows, given.workers, all_tasks)}\n")
    digest = hashlib.sha256(expected).hexdigest()
    verdict = f"responses differ: {', '.join(sorted(differing))}" if differing else "all responses are equal"
    print(f"{verdict}; SHA-256 of pleach's: {digest[:16]}")
    if given.json:
        record = {
            "evaluations": runs // len(tiles),
            "pipeline": given.pipeline,
            "trajectories": trajectories,
            "tiles": [tile.stem for tile in tiles],
            "runs": runs,
            "tasks_without_reuse": all_tasks,
            "first_of_peers_without_reuse": given.first,
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
