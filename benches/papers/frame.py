"""Figures of the papers, and the steps that measure them.

A module of this folder with a list FIGURES registers its figures. A figure calls `context.step` for each measurement, and
computes everything else from the values of its steps. A step's value is kept as a JSON file, so that a run continues where an
earlier one was killed: a step is lost only if it was running.

    def fig_20(context):
        found = context.json("cluster", path, "--method", "all", files=[path])   # a step
        return Result(rows=[["gain of hrb", "up to 48 %", percent(...)]], why="...")

    FIGURES = [Figure("002", "Fig. 20", "Gains of all methods", "simulated", fig_20)]

Inputs of a step that its arguments do not show (a constant of its function) belong into `inputs`: its key has them, and the
digest of the program.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# How a figure is obtained. A figure may have several, joined by ", ".
KINDS = {
    "executed": "pleach executes the study, and times are wall time",
    "simulated": "pleach simulates the execution of a plan or of a clustering",
    "planned": "pleach computes plans, metrics or jobs, and nothing is executed or simulated",
    "not reproduced": "with the reason in its section",
}


class NotRun(Exception):
    """A step has no value yet, and may not be run now."""


class StepFailed(Exception):
    """A program of a step failed. The message has its command and the end of its output."""


@dataclass
class Table:
    """A further table of a figure. Cells are text or numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""


@dataclass
class Picture:
    """A drawing of `chart`. `name` is a part of its file name, unique within the figure; `alt` describes it in words."""

    name: str
    alt: str
    svg: str


@dataclass
class Result:
    """Values of a figure beside the published ones.

    `rows` are (what, published, ours), or as `columns` has it; "" where a paper prints nothing. `why` explains differences
    in words. `tables` follow with further values, `pictures` after them.
    """

    rows: Sequence[Sequence[Any]] = ()
    why: str = ""
    columns: Sequence[str] = ("", "published", "ours")
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    setting: str = ""  # what was run, in one or two sentences: tiles, evaluations, replicates


@dataclass
class Figure:
    """A results figure, table or worked example of a paper.

    `kind` is one of KINDS, or several joined by ", ". `run` is None for "not reproduced", which has a `reason`. `same` are
    figures of other papers with the same content, such as "001 Fig. 12".
    """

    paper: str
    label: str
    title: str
    kind: str
    run: Callable[[Context], Result] | None = None
    reason: str = ""
    same: Sequence[str] = ()

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.kind.split(", ") if kind not in KINDS]
        if unknown:
            raise ValueError(f"{self.name}: kind {unknown[0]!r}; one of {', '.join(KINDS)}")
        if (self.run is None) != bool(self.reason):
            raise ValueError(f"{self.name}: a figure has a function, or a reason why it is not reproduced")

    @property
    def name(self) -> str:
        """Paper and label, such as "002 Fig. 20"."""
        return f"{self.paper} {self.label}"

    @property
    def names(self) -> list[str]:
        """The name, and those of the same content in other papers."""
        return [self.name, *self.same]

    @property
    def slug(self) -> str:
        """The name for files: "002-fig-20"."""
        return "".join(c if c.isalnum() else "-" for c in self.name.lower()).replace("--", "-").strip("-")

    def matches(self, wanted: str) -> bool:
        """Whether `wanted` is a paper ("002"), a name ("002 Fig. 20") or a label ("fig. 20"), in any case."""
        wanted = " ".join(wanted.lower().split())
        names = [name.lower() for name in self.names]
        return any(wanted in (name, name.split(" ", 1)[0], name.split(" ", 1)[1]) for name in names)


def figures(folder: Path = HERE) -> list[Figure]:
    """Returns the figures of all modules of the folder, in the order of papers, then as registered."""
    found: list[Figure] = []
    for path in sorted(folder.glob("*.py")):
        if not path.name.startswith("test") and "\nFIGURES" in path.read_text():
            found.extend(importlib.import_module(path.stem).FIGURES)
    names = [name for figure in found for name in figure.names]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"registered twice: {', '.join(sorted(twice))}")
    return sorted(found, key=lambda figure: (figure.paper, place(figure.label)))


def introductions(folder: Path = HERE) -> dict[str, str]:
    """Returns the paragraphs that modules give for a paper, as INTRODUCTION = {"002": text}: settings of all its figures."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.py")):
        if not path.name.startswith("test") and "\nINTRODUCTION" in path.read_text():
            for paper, text in importlib.import_module(path.stem).INTRODUCTION.items():
                found[paper] = "\n\n".join(filter(None, [found.get(paper), text]))
    return found


def place(label: str) -> tuple:
    """Sorts labels by kind and number: Fig. 9 before Fig. 10, figures before tables before the rest."""
    kind = next((n for n, start in enumerate(("Fig", "Table")) if label.startswith(start)), 2)
    roman = {"I": 1, "II": 2, "III": 3, "IV": 4, "V": 5}
    parts = label.replace("–", " ").replace(".", " ").split()[1:]
    numbers = [int("".join(filter(str.isdigit, part)) or roman.get(part, 0)) for part in parts]
    return (kind, numbers, label)


@dataclass
class Context:
    """What a figure's function gets: the program, the data, the mode, and steps."""

    pleach: Path
    results: Path
    quick: bool = True
    data: Path | None = None  # PLEACH_TEST_DATA, None where it is absent
    only_stored: bool = False  # raise NotRun where a step has no value yet
    log: Callable[[str], None] = print
    seconds: float = 0.0  # of the steps so far, stored ones included
    seconds_run: float = 0.0  # of the steps that were run now
    keys: list[str] = field(default_factory=list)  # of the steps so far

    @property
    def cores(self) -> int:
        """Processors of this machine that the process may use."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def choose(self, quick: Any, full: Any) -> Any:
        """Returns `quick` with --quick, else `full`."""
        return quick if self.quick else full

    def step(self, name: str, compute: Callable[[], Any], /, **inputs: Any) -> Any:
        """Returns the value of `compute`, which is kept: a value that JSON can hold, never NaN.

        Its key is `name` with `inputs` (values for JSON, paths as their content's digest by `digest`) and the program.
        """
        identity = json.dumps([name, inputs, self.program()], sort_keys=True, default=str)
        key = hashlib.sha256(identity.encode()).hexdigest()[:24]
        path = self.results / "steps" / f"{key}.json"
        self.keys.append(key)
        try:
            kept = json.loads(path.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            if self.only_stored:
                raise NotRun(name) from None
            self.log(f"  {name} ...")
            start = time.monotonic()
            value = compute()
            seconds = time.monotonic() - start
            # Through JSON, so that a fresh value has the types of a stored one.
            kept = {"name": name, "inputs": inputs, "seconds": seconds, "value": value}
            kept = json.loads(json.dumps(kept, default=str, allow_nan=False))
            publish(path, json.dumps(kept, indent=1) + "\n")
            self.log(f"  {name}: {seconds:.1f} s")
            self.seconds_run += seconds
        self.seconds += kept["seconds"]
        return kept["value"]

    def replicates(
        self, name: str, variants: Mapping[str, Callable[[], Any]], count: int, /, **inputs: Any
    ) -> dict[str, list[Any]]:
        """Calls each variant `count` times, interleaved: a machine that becomes slower slows all of them.

        Each call is a step of its own. Returns the values of each variant, in the order of the replicates. The first is not
        discarded: a figure that needs a warm machine runs a step of its own before.
        """
        values: dict[str, list[Any]] = {variant: [] for variant in variants}
        for number in range(count):
            for variant, compute in variants.items():
                replicate = {"variant": variant, "replicate": number}
                # The name of the step is without the count, so that further replicates keep the earlier ones.
                values[variant].append(self.step(f"{name}: {variant}", compute, **inputs, **replicate))
        return values

    def json(self, *arguments: Any, files: Sequence[Path] = (), **inputs: Any) -> Any:
        """A step: the JSON document that `pleach ARGUMENTS --json` prints. `files` are those it reads, keyed by content."""
        given = [str(argument) for argument in arguments]
        shown = [Path(argument).name if "/" in argument else argument for argument in given]
        digests = [digest(Path(file)) for file in files]

        def compute() -> Any:
            return json.loads(self.run(*given, "--json").stdout)

        return self.step(" ".join(["pleach", *shown]), compute, files=digests, **inputs)

    def run(self, *arguments: Any, cwd: Path | None = None, timeout: float | None = None) -> subprocess.CompletedProcess:
        """Runs `pleach ARGUMENTS` within a step. Raises StepFailed unless it succeeds, NotRun if steps may not run."""
        if self.only_stored:
            raise NotRun(f"pleach {arguments[0] if arguments else ''}".rstrip())
        return execute([self.pleach, *arguments], cwd=cwd, timeout=timeout)

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A temporary folder below the results, removed at the end, and by the next run if this one is killed."""
        parent = self.results / "scratch" / str(os.getpid())
        parent.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(dir=parent) as folder:
                yield Path(folder)
        finally:
            with contextlib.suppress(OSError):
                parent.rmdir()

    def program(self) -> str:
        """Digest of the program, computed once for each size and time of change."""
        state = self.pleach.stat()
        path = self.results / "program.json"
        known = {"path": str(self.pleach), "bytes": state.st_size, "changed": state.st_mtime_ns}
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            kept = json.loads(path.read_text())
            if {name: kept.get(name) for name in known} == known:
                return kept["digest"]
        publish(path, json.dumps(known | {"digest": digest(self.pleach)}))
        return json.loads(path.read_text())["digest"]

    def clean(self) -> None:
        """Removes temporary files that killed runs left. Those of a run under way stay."""
        for folder in (self.results / "scratch").glob("*"):
            if not is_running(folder.name):
                shutil.rmtree(folder, ignore_errors=True)
        for path in (self.results / "steps").glob(".new-*"):
            if time.time() - path.stat().st_mtime > 60:
                path.unlink(missing_ok=True)


def is_running(process: str) -> bool:
    """Whether a process of this number exists."""
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def execute(command: Sequence[Any], cwd: Path | None = None, timeout: float | None = None) -> subprocess.CompletedProcess:
    """Runs a command and returns its output as text. Raises StepFailed unless it succeeds within `timeout` seconds."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise StepFailed(f"{' '.join(words)}: no result within {timeout:g} s") from None
    if done.returncode != 0:
        raise StepFailed(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return done


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else whole(file)


def whole(file: Any) -> str:
    """SHA-256 of an open file, for Python 3.10."""
    total = hashlib.sha256()
    while block := file.read(1 << 20):
        total.update(block)
    return total.hexdigest()


def publish(path: Path, text: str) -> None:
    """Writes a file as a whole: a reader, or a run after kill -9, never finds a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".new-", delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def percent(fraction: float, digits: int = 1) -> str:
    """`0.123` as "12.3 %"."""
    return f"{100 * fraction:.{digits}f} %".replace("-", "−")


def number(value: float, digits: int = 3) -> str:
    """A number with `digits` significant digits, without an exponent."""
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    return (f"{float(text):.0f}" if "e" in text or abs(value) >= 10**digits else text).replace("-", "−")
