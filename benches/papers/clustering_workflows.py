"""Workflows of paper 002, and simulations of their clusterings as steps."""

from __future__ import annotations

import gzip
import json
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import welch
from frame import Context, Table, digest, percent

# Table 3: name of the paper, family of `pleach cluster generate`, tasks, the trace that comes nearest, mean file, mean run time.
FAMILIES = (
    ("LIGO", "ligo", 800, "dax/LIGO_800.xml.gz", "5 MB", 228),
    ("Montage", "montage", 300, "dax/Montage_300.xml.gz", "3 MB", 11),
    ("CyberShake", "cybershake", 700, "dax/CyberShake_500.xml.gz", "148 MB", 23),
    ("Epigenomics", "epigenomics", 165, "dax/Genome_200.xml", "355 MB", 2952),
    ("SIPHT", "sipht", 1000, "dax/SIPHT_200.xml.gz", "360 KB", 180),
)
METHODS = ("hrb", "hifb", "hdb", "hc", "dfjs", "afjs")

INTRODUCTION = {
    "002": "Unless a figure has other settings: 20 workers, 20 jobs a level, 15 MB/s, as in §5.3. The paper prints no overhead. The queue "
    "delay is 60 s, chosen so that Montage gains about the published maximum; the clustering delay is 1 s, engine and post delay are 0. "
    "Gains are 1 − makespan / makespan without clustering. HC is shuffled: its gain is the mean of several seeds with a 95 % "
    "interval. Figures 19 to 29 are pictures without printed values, so that the claims of the text are checked one by one."
}


@dataclass(frozen=True)
class Workflow:
    """A trace, a generated workflow, or an example."""

    label: str
    identity: str
    trace: Path | None = None
    family: str = ""
    tasks: int = 0
    seed: int = 0
    text: str = ""

    def path(self, context: Context) -> Path:
        """Returns the file, which is generated or written below the results if it is missing. Called within steps."""
        if self.trace:
            return self.trace
        folder = context.results / "workflows" / context.program()[:12]
        path = folder / f"{self.label}.dag"
        if self.text or not path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            part = folder / f"part-{os.getpid()}-{self.label}.dag"
            if self.text:
                part.write_text(self.text)
            else:
                given = [self.family, "--tasks", self.tasks, "--seed", self.seed]
                context.run("cluster", "generate", *given, "--out", part)
            os.replace(part, path)
        return path


def trace(context: Context, name: str) -> Workflow | None:
    """Returns a trace of the test data, None without the data."""
    path = context.data / "workflows" / name if context.data else None
    if path is None or not path.is_file():
        return None
    return Workflow(path.name.split(".")[0], digest(path), trace=path)


def generated(family: str, tasks: int, seed: int = 1) -> Workflow:
    """Returns a workflow of `pleach cluster generate`."""
    label = f"{family}_{tasks}_{seed}"
    return Workflow(label, label, family=family, tasks=tasks, seed=seed)


def example(label: str, text: str) -> Workflow:
    """Returns a workflow of DAG lines."""
    return Workflow(label, text, text=text)


def dag(seconds: dict[str, float], children: dict[str, Sequence[str]]) -> str:
    """DAG lines of tasks with run times and edges, without files."""
    tasks = [f"TASK {task} example {time}" for task, time in seconds.items()]
    edges = [f"EDGE {parent} {child}" for parent, all_of in children.items() for child in all_of]
    return "\n".join([*tasks, *edges]) + "\n"


def cluster(context: Context, workflow: Workflow, *options: Any) -> dict[str, Any]:
    """A step: the workflow in the JSON document of `pleach cluster WORKFLOW OPTIONS`."""
    words = [str(option) for option in options]

    def compute() -> Any:
        done = context.run("cluster", workflow.path(context), *words, "--json")
        return json.loads(done.stdout)["workflows"][0]

    name = f"pleach cluster {workflow.label} {' '.join(words)}"
    return context.step(name, compute, workflow=workflow.identity, options=words)


def jobs(context: Context, workflow: Workflow, *options: Any) -> list[list[str]]:
    """A step: the tasks of each job, as `pleach cluster WORKFLOW OPTIONS --out jobs.json` writes them."""
    words = [str(option) for option in options]

    def compute() -> Any:
        with context.folder() as folder:
            context.run("cluster", workflow.path(context), *words, "--out", folder / "jobs.json")
            return [job["tasks"] for job in json.loads((folder / "jobs.json").read_text())["jobs"]]

    return context.step(f"jobs of {workflow.label} {' '.join(words)}", compute, workflow=workflow.identity, options=words)


def clustering(found: dict[str, Any], method: str, vertical: str = "none") -> dict[str, Any] | None:
    """The clustering of a method and vertical mode. None if the mode leaves the jobs as they are, so that it is not listed."""
    for entry in found["clusterings"]:
        if (entry["method"], entry["vertical"]) == (method, vertical):
            return entry
    return None


def gain(context: Context, workflow: Workflow, method: str, *options: Any, vertical: str = "none") -> float:
    """A step: the gain of a clustering. A vertical mode that changes nothing has the gain of the method."""
    given = ["--method", method, *options] + (["--vertical", vertical] if vertical != "none" else [])
    found = cluster(context, workflow, *given)
    entry = clustering(found, method, vertical) or found["clusterings"][found["shown"]]
    return entry["gain"]


def shuffled_gains(
    context: Context, workflow: Workflow, count: int, *options: Any, vertical: str = "none"
) -> list[float]:
    """A step: gains of HC, which is shuffled, for so many seeds."""
    words = [str(option) for option in options] + (["--vertical", vertical] if vertical != "none" else [])

    def compute() -> Any:
        gains = []
        for seed in range(count):
            command = ["cluster", workflow.path(context), "--method", "hc", *words, "--seed", seed, "--json"]
            found = json.loads(context.run(*command).stdout)["workflows"][0]
            gains.append(found["clusterings"][found["shown"]]["gain"])
        return gains

    name = f"hc of {workflow.label}, {count} seeds, {' '.join(words)}".rstrip(", ")
    return context.step(name, compute, workflow=workflow.identity, options=words, count=count)


def gains(
    context: Context, workflow: Workflow, methods: Sequence[str], seeds: int, *options: Any, vertical: str = "none"
) -> dict[str, welch.Mean]:
    """Gains by method. That of HC is the mean over `seeds` shuffles with its interval."""
    found = {}
    for method in methods:
        if method == "hc":
            found[method] = welch.mean(shuffled_gains(context, workflow, seeds, *options, vertical=vertical))
        else:
            found[method] = welch.mean([gain(context, workflow, method, *options, vertical=vertical)])
    return found


def shown(value: welch.Mean | float) -> str:
    """A gain in percent, with its interval if it has one."""
    if isinstance(value, float):
        return percent(value)
    half = f" ± {100 * value.half:.1f}" if value.count > 1 else ""
    return f"{100 * value.mean:.1f}{half} %".replace("-", "−")


def claims(rows: Sequence[tuple[str, str, bool | str]]) -> Table:
    """Claims of the text, each with our values and whether it holds. A text in place of the truth is shown as it is."""
    words = {True: "holds", False: "does not hold"}
    return Table(
        ["claim of the text", "ours", "result"],
        [[claim, ours, words[holds] if isinstance(holds, bool) else holds] for claim, ours, holds in rows],
    )


@dataclass
class Content:
    """Number of tasks, mean run time, and mean sizes: of distinct files, and over all uses."""

    tasks: int
    seconds: float
    file_bytes: float
    use_bytes: float


def content(path: Path) -> Content:
    """Reads tasks and sizes of a DAX file or of DAG lines, plain or in gzip: an independent reader for Table 3."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    if text.lstrip().startswith("<"):
        return content_of_dax(text)
    sizes: dict[str, float] = {}
    times, uses = [], []
    for line in text.splitlines():
        word, *rest = line.split() or [""]
        if word == "FILE":
            sizes[rest[0]] = float(rest[1])
        elif word == "TASK":
            times.append(float(rest[2]))
        elif word in ("INPUTS", "OUTPUTS"):
            uses.extend(sizes[name] for name in rest[1:])
    return Content(len(times), average(times), average(list(sizes.values())), average(uses))


def content_of_dax(text: str) -> Content:
    """Reads tasks and sizes of Pegasus DAX 2.1."""
    times, uses = [], []
    sizes: dict[str, float] = {}
    for element in ElementTree.fromstring(text).iter():
        tag = element.tag.rsplit("}", 1)[-1]
        if tag == "job":
            times.append(float(element.get("runtime", "0")))
        elif tag == "uses":
            size = abs(float(element.get("size", "0")))
            uses.append(size)
            sizes[element.get("file") or element.get("name") or ""] = size
    return Content(len(times), average(times), average(list(sizes.values())), average(uses))


def average(values: Sequence[float]) -> float:
    """Mean, 0 of no values."""
    return sum(values) / len(values) if values else 0.0


def megabytes(count: float) -> str:
    """Bytes as MB, or KB below one."""
    return f"{count / 1e3:.0f} KB" if count < 1e6 else f"{count / 1e6:.1f} MB"
