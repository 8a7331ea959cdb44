"""Scaling: 000 Figs. 4.4 and 4.5, Table 4.2 and §4.4; 001 Figs. 11, 14 and 15; 003 Fig. 8.

Simulations are those of crates/simulation/benches/papers: pleach's manager on simulated workers.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import chart
import reuse_designs as designs
import reuse_studies as studies
import welch
from burst_file import burst_file
from frame import ROOT, Context, Figure, Picture, Result, StepFailed, Table, execute, percent

WORKERS = (8, 16, 32, 64, 128, 256)
SIMULATED = (
    "Simulated with pleach's manager, task times of 000 Table 4.3 with log-normal factors of tiles and tasks (variation .2 each), "
    "without files and memory limits; the mean of three seeds."
)


def simulate(context: Context, *arguments: str) -> list[dict[str, str]]:
    """A step: rows of a table of `cargo bench --package pleach-simulation --bench papers`, by column.

    The program is built if it is not. PLEACH_BENCH_PROFILE names another profile than cargo's default.
    """

    def compute() -> list[dict[str, str]]:
        cargo = shutil.which("cargo") or shutil.which("cargo", path=os.path.expanduser("~/.cargo/bin"))
        if not cargo:
            raise StepFailed("cargo bench: no cargo in PATH; the simulations of scaling are benches")
        profile = os.environ.get("PLEACH_BENCH_PROFILE")
        command = [cargo, "bench", "--locked", "--quiet", "--package", "pleach-simulation", "--bench", "papers"]
        command += ["--profile", profile] if profile else []
        return rows(execute([*command, "--", *arguments], cwd=ROOT).stdout)

    return context.step(f"cargo bench papers {' '.join(arguments)}", compute)


def rows(text: str) -> list[dict[str, str]]:
    """Rows of the first Markdown table of a text. Columns of one name are numbered from the second on."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    if len(lines) < 3:
        raise ValueError(f"cargo bench: {len(lines)} lines of a table; a heading and rows are needed")
    names: list[str] = []
    for name in lines[0]:
        names.append(f"{name} {number}" if (number := lines[0][: len(names) + 1].count(name)) > 1 else name)
    return [dict(zip(names, cells, strict=True)) for cells in lines[2:]]


def moat_tables(context: Context) -> dict[int, dict[str, float]]:
    """Makespans of MOAT 1000 on one tile by workers: "stage level", "RTMA", "TRTMA" and "TRTMA with help"."""
    columns = {
        "stage level": "stage, s", "RTMA": "RTMA 10, s", "TRTMA": "TRTMA by counts, s",
        "TRTMA by costs, with help": "by costs and with help, s",
    }  # fmt: skip
    return {
        int(row["workers"]): {name: float(row[column]) for name, column in columns.items()} for row in simulate(context, "a")
    }


def times(context: Context) -> Result:
    """Thesis Fig. 4.4, paper 001 Fig. 14."""
    found = moat_tables(context)
    worse = [workers for workers, row in found.items() if row["RTMA"] > row["stage level"]]
    slower = [workers for workers, row in found.items() if row["TRTMA"] > row["stage level"]]
    until = [workers for workers, row in found.items() if row["RTMA"] < row["stage level"] and row["TRTMA"] < row["stage level"]]
    last = found[256]
    return Result(
        rows=[
            ["RTMA and TRTMA faster than stage level", "up to 32 workers", f"up to {max(until)}"],
            ["RTMA slower than stage level", "above 64 workers", f"at {', '.join(map(str, worse)) or 'none'}"],
            ["TRTMA against RTMA, 256 workers", "close to 2", f"{last['RTMA'] / last['TRTMA']:.2f}"],
            ["TRTMA slower than stage level", "at none", f"at {', '.join(map(str, slower)) or 'none'}"],
        ],
        tables=[Table(["workers", *(f"{name}, s" for name in last)], [[workers, *row.values()] for workers, row in found.items()])],
        setting=f"MOAT of 1,000 evaluations on one tile, RTMA with MaxBucketSize 10, TRTMA with 3 buckets for each worker. {SIMULATED}",
        why="The order is the published one. RTMA loses less at 256 workers here: the variation of the papers' task times is not published, and their "
        "times include files and messages. \"With help\" adds work stealing and balance by costs, which the papers do not have.",
        pictures=[
            Picture("makespan", "Makespan of MOAT 1000 by workers for RTMA and TRTMA, relative to stage level",
                    chart.lines("MOAT 1000 on one tile (simulated)", {name: [(w, row[name] / row["stage level"]) for w, row in found.items()] for name in last},
                                "workers", "makespan / makespan of stage level", log_x=True))
        ],
    )  # fmt: skip


def efficiency(context: Context) -> Result:
    """Thesis Fig. 4.5: efficiency of each number of workers against half of it."""
    found = moat_tables(context)
    series: dict[str, list[tuple[float, float]]] = {}
    for half, workers in zip(WORKERS, WORKERS[1:], strict=False):
        for name in ("stage level", "RTMA", "TRTMA"):
            series.setdefault(name, []).append((workers, found[half][name] / found[workers][name] / 2))
    instances = {workers: 1000 / workers for workers in WORKERS}
    table = [
        [workers, f"{instances[workers]:.1f}", *(percent(dict(values)[workers]) for values in series.values())]
        for workers in WORKERS[1:]
    ]  # fmt: skip
    ends = {name: values[-1][1] for name, values in series.items()}
    first = {name: next((int(w) for w, value in values if value < 0.95), None) for name, values in series.items()}
    return Result(
        rows=[
            ["RTMA and TRTMA lose efficiency from", "32 workers", f"{first['RTMA']} and {first['TRTMA']} (below 95 %)"],
            ["stage level is the upper bound at 256 workers", "yes", "yes" if ends["stage level"] >= max(ends.values()) else "no"],
            ["RTMA below TRTMA at 128 workers", "yes", "yes" if dict(series["RTMA"])[128] < dict(series["TRTMA"])[128] else "no"],
        ],
        tables=[Table(["workers", "evaluations for each", *series], table, "Efficiency against half of the workers:")],
        setting=f"The makespans of Fig. 4.4. {SIMULATED}",
        why="The values of the drawing are not in the text. Times of tasks vary by .2 here; the thesis names their variation as the cause and does not publish it.",
        pictures=[
            Picture("efficiency", "Parallel efficiency by workers against half of them",
                    chart.lines("Parallel efficiency against half of the workers (simulated)", series, "workers", "efficiency", log_x=True))
        ],
    )  # fmt: skip


def speedups(context: Context) -> Result:
    """Thesis Table 4.2."""
    published = {8: (1.33, 32.96), 16: (1.34, 32.96), 32: (1.27, 32.11), 64: (1.12, 30.58), 128: (1.04, 28.23), 256: (1.01, 10.73)}
    found, sets, lines = moat_tables(context), designs.moat(1000), []
    groups, marks = {}, {}
    for workers, (speedup, reuse) in published.items():
        options = ("--strategy", "trtma", "--reuse", "tree", "--max-buckets", 3 * workers)
        planned = studies.segmentation(studies.plan(context, "MOAT 1000", sets, *options))["reuse_fraction"]
        ours = found[workers]["stage level"] / found[workers]["TRTMA"]
        lines.append([workers, f"{speedup:.2f}", f"{ours:.2f}", f"{reuse:.2f} %", percent(planned, 2)])
        groups[str(workers)] = {"ours": ours}
        marks[str(workers), "ours"] = speedup
    return Result(
        columns=["workers", "speedup on stage level, published", "ours, simulated", "reuse of TRTMA, published", "ours, planned"],
        rows=lines,
        setting=f"MOAT of 1,000 evaluations on one tile, TRTMA with 3 buckets for each worker. {SIMULATED}",
        why="pleach's plan balances buckets by the costs of tasks, the thesis by their numbers. Speedups are above the published ones: files and messages take no "
        "time of a worker here, and the variation of the thesis' task times is not published.",
        pictures=[
            Picture("speedup", "Speedup of TRTMA on stage level by workers, and the published values",
                    chart.bars("TRTMA against stage level, MOAT 1000 (simulated)", groups, "speedup, by workers", published=marks))
        ],
    )  # fmt: skip


def by_vbd(context: Context) -> Result:
    """Paper 001 Fig. 15."""
    found = simulate(context, "b")
    gains = [float(row["stage / RTMA"]) for row in found]
    equal = [float(row["TRTMA by counts, s"]) / float(row["RTMA 10, s"]) for row in found]
    names = {"stage level": "stage, s", "RTMA": "RTMA 10, s", "TRTMA": "TRTMA by counts, s"}
    series = {name: [(int(row["workers"]), float(row[column]) / float(row["stage, s"])) for row in found] for name, column in names.items()}
    return Result(
        rows=[
            ["RTMA against stage level", "1.26 to 1.35", f"{min(gains):.2f} to {max(gains):.2f}"],
            ["RTMA slower than stage level", "at none", "at none" if min(gains) >= 1 else "at some"],
            ["TRTMA / RTMA, time", "equivalent", f"{min(equal):.2f} to {max(equal):.2f}"],
        ],
        tables=[Table(["workers", *(f"{name}, s" for name in names)], [[row["workers"], *(row[column] for column in names.values())] for row in found])],
        setting=f"VBD of 10,000 evaluations by Monte Carlo on one tile, RTMA with MaxBucketSize 10. {SIMULATED}",
        why="Reuse of VBD saves 36.5 % of the tasks here, which gives 1.5 where all workers have work. The published times also have files and messages, which reuse does not save. "
        "At 256 workers RTMA's buckets are 4 for each, and TRTMA's are of even cost.",
        pictures=[
            Picture("makespan", "Makespan of VBD 10,000 by workers for RTMA and TRTMA, relative to stage level",
                    chart.lines("VBD 10,000 on one tile (simulated)", series, "workers", "makespan / makespan of stage level", log_x=True))
        ],
    )  # fmt: skip


def large(context: Context) -> Result:
    """Thesis §4.4: 240 evaluations of 4,276 tiles on 128 nodes."""
    found = simulate(context, "c")
    lines = [
        [row["version"], row["published, s"], row["ours, s"], row["against no reuse, published"], row["ours"], row["slots busy"]]
        for row in found
    ]  # fmt: skip
    groups = {row["version"]: {"ours": float(row["ours"])} for row in found}
    marks = {(row["version"], "ours"): float(row["against no reuse, published"]) for row in found if row["against no reuse, published"]}
    return Result(
        columns=["version", "published, s", "ours, s", "against no reuse, published", "ours", "slots busy, ours"],
        rows=lines,
        setting=f"MOAT of 240 evaluations, 128 nodes of 16 cores. {SIMULATED.replace('; the mean of three seeds', '')}",
        why="Task level agrees. The published stage level gains less on no reuse (1.25) than the thesis' own Fig. 4.1 (1.85); ours has the share of the normalization "
        "that 1.77 on one tile needs. Seconds are those of task costs that the thesis calls relative.",
        pictures=[
            Picture("speedup", "Speedup against no reuse by version, and the published values",
                    chart.bars("4,276 tiles on 128 nodes (simulated)", groups, "speedup against no reuse", published=marks))
        ],
    )  # fmt: skip


CORES = (1, 2, 4, 7, 14, 28)
# Tiles of the simulation: one for each core of the largest node.
SIMULATED_TILES = 28


def cores(context: Context) -> tuple[dict[str, list[dict[str, Any]]], list[float]]:
    """Replicates on 1 and 2 workers, and makespans predicted from a run on one worker, for CORES."""
    side, count = context.choose((256, 4), (1024, 4))
    tiles = [path for path in sorted(studies.tissue(context, side, count).glob("*.png")) if "_labels" not in path.name]
    text = studies.study("tiles/*", studies.moat(160))
    options = ["--reuse", "tree", "--active-paths", 1]
    given = {"tiles": f"tissue {side} {count}", "study": text}
    measured = context.replicates(
        "RMSR by cores",
        {str(workers): lambda workers=workers: studies.run(context, tiles, text, options, workers=workers) for workers in (1, 2)},
        studies.REPLICATES, **given,
    )  # fmt: skip

    def predict() -> list[float]:
        with context.folder() as folder:
            (folder / "tiles").mkdir()
            for path in tiles:
                (folder / "tiles" / path.name).symlink_to(path)
            (folder / "study.toml").write_text(text)
            context.run("run", folder / "study.toml", "--out", folder / "out", "--quiet", "--workers", 1, *options)
            found = []
            for number in CORES:
                (folder / "burst.toml").write_text(burst_file("out/run.json", number, tiles=SIMULATED_TILES, tile_pixels=side**2))
                document = json.loads(context.run("simulate", folder / "burst.toml", "--json").stdout)
                found.append(document["policies"][0]["makespan_seconds"])
            return found

    return measured, context.step("RMSR by cores, simulated", predict, cores=CORES, simulated=SIMULATED_TILES, **given)


def by_cores_and_nodes(context: Context) -> Result:
    """Paper 003 Fig. 8: cores of a node (a), and nodes (b)."""
    measured, predicted = cores(context)
    execution = {workers: [record["execution"] for record in records] for workers, records in measured.items()}
    speedup = welch.speedup(execution["1"], execution["2"])
    strong = simulate(context, "d", *context.choose(("256",), ()))
    rtma = {int(row["nodes"]): row for row in strong if row["strategy"].startswith("RTMA")}
    trtma = {int(row["nodes"]): row for row in strong if row["strategy"].startswith("TRTMA")}
    column = "efficiency against 8 nodes"
    side, count = context.choose((256, 4), (1024, 4))
    simulated = [(number, predicted[0] / seconds) for number, seconds in zip(CORES, predicted, strict=True)]
    series = {
        "simulated": simulated, "ideal": [(number, float(number)) for number in CORES],
        "executed": [(1, 1.0), (2, speedup.mean)],
    }  # fmt: skip
    lines = {name: [(nodes, float(row[column])) for nodes, row in found.items()] for name, found in (("RTMA 10", rtma), ("TRTMA with help", trtma))}
    return Result(
        rows=[
            ["8a: speedup of 2 cores, executed", "slightly below ideal", f"{speedup}, {welch.welch(execution['1'], execution['2'])} ({context.cores} processors)"],
            ["8a: speedup of 2 and of 28 cores, simulated", "slightly below ideal", f"{dict(simulated)[2]:.2f} and {dict(simulated)[28]:.1f}"],
            ["8b: parallel efficiency of 256 nodes, RTMA", "92 %", percent(float(rtma[256][column]))],
            ["8b: the same, TRTMA and help for idle workers", "", percent(float(trtma[256][column]))],
        ],
        tables=[
            Table(["cores", "makespan, s, simulated", "speedup"],
                  [[number, f"{seconds:.2f}", f"{predicted[0] / seconds:.2f}"] for number, seconds in zip(CORES, predicted, strict=True)], "8a:"),
            Table(["nodes", "strategy", "makespan, s", "efficiency against 8 nodes", "slots busy"],
                  [[row["nodes"], row["strategy"], row["seconds"], row[column], row["slots busy"]] for row in strong], "8b:"),
        ],
        setting=f"8a: execution of MOAT 160 on {count} generated tiles of {side:,} × {side:,} px, one path of a bucket at a time, {studies.REPLICATES} replicates. {SIMULATED_TILES} such tiles on 1 to 28 cores are "
        "simulated with the task times measured on one core. 8b: MOAT 160 on 6,113 tiles, nodes of 28 cores, simulated as 000 Fig. 4.4.",
        why="The machine has few cores, so the paper's 28 are simulated: the bandwidth of memory, which it names as the limit, is not a part of that. "
        "Simulated cores wait only at the end, for the last buckets. 8b has no files, which cost the published runs efficiency.",
        pictures=[
            Picture("cores", "Speedup by cores, executed and simulated", chart.lines("Speedup by cores", series, "cores", "speedup", dashed=["ideal"])),
            Picture("nodes", "Parallel efficiency by nodes", chart.lines("Efficiency on 6,113 tiles (simulated)", lines, "nodes", "efficiency against 8 nodes", log_x=True)),
        ],
    )  # fmt: skip


def hybrid(context: Context) -> Result:
    """Paper 001 Fig. 11: nodes of 16 cores and an accelerator."""
    found = simulate(context, "g", *context.choose(("256", "64"), ()))
    versions = ("CPU", "accelerator", "FCFS", "HEFT", "PATS")
    by = {name: {int(row["nodes"]): row for row in found if row["version"] == name} for name in versions}
    nodes, efficiency = list(by["PATS"]), "efficiency against one node"
    most, tiles = nodes[-1], int(by["PATS"][1]["tiles"])
    against = {name: [float(by[name][count]["seconds / PATS"]) for count in nodes] for name in versions}
    mean = {name: f"{sum(ratios) / len(ratios):.2f}" for name, ratios in against.items()}
    scaled = {name: float(by[name][most][efficiency]) for name in versions}
    last = by["PATS"][most]
    names = {"CPU": "CPU", "accelerator": "accelerator", **{name: f"both, {name}" for name in versions[2:]}}
    series = {names[name]: [(count, float(row["seconds"])) for count, row in rows.items()] for name, rows in by.items()}
    return Result(
        rows=[
            ["FCFS / PATS, mean over nodes", "about 1.32", mean["FCFS"]],
            ["HEFT / PATS, mean", "1.2", mean["HEFT"]],
            ["CPU / PATS, mean", "about 2", mean["CPU"]],
            ["both faster than either alone", "in all cases", "in all cases" if min(*against["CPU"], *against["accelerator"]) > 1 else "not in all"],
            ["parallel efficiency of PATS, largest number of nodes", "over 90 % (256)", f"{percent(scaled['PATS'])} ({most})"],
            ["the least of all versions there", "", percent(min(scaled.values()))],
        ],
        tables=[
            Table(["nodes", "tiles", *(f"{name}, s" for name in names.values()), "efficiency, PATS", "FCFS / PATS", "HEFT / PATS"],
                  [[count, f"{int(by['PATS'][count]['tiles']):,}", *(by[name][count]["seconds"] for name in versions), percent(float(by["PATS"][count][efficiency])),
                    *(by[name][count]["seconds / PATS"] for name in ("FCFS", "HEFT"))] for count in nodes])
        ],
        setting=f"Nodes of 16 cores and one accelerator, {tiles} tiles for each (136,568 tiles on 256 nodes in the paper). Simulated with pleach's manager, and on each node the state machines of its "
        "worker and buckets place every task. Ten operations with the times on a core and on a GPU that the example of Region Templates prints, Table 2's deconvolution, gradient, Sobel edge and statistics "
        "of pixels among them, with log-normal factors of tiles and tasks (variation .2 each).",
        why="The order is the published one. The paper prints no gain of an operation: with those of the example and 300 equal tiles, the least possible time is 1.27 times less than that of a prototype's FCFS, so 1.32 belongs to gains of the Phi. "
        f"Cores are busy {last['cores busy']} of the time with PATS at {most} nodes, and accelerators {last['accelerators busy']}: nodes wait for each other only at the end, a greater share of the time with 64 tiles for each (--quick, 79 % at 256 nodes) than with 533 (--full). Files and transfers between nodes, "
        "which cost the published runs efficiency, take no time here.",
        pictures=[
            Picture("makespan", "Makespan by nodes for CPUs, accelerators, and both with FCFS, HEFT and PATS",
                    chart.lines(f"Weak scaling, {tiles} tiles for each node (simulated)", series, "nodes", "makespan, s", log_x=True))
        ],
    )  # fmt: skip


FIGURES = [
    Figure("000", "Fig. 4.4", "Merging and scalability, MOAT 1000", "simulated", times, same=["001 Fig. 14"]),
    Figure("000", "Fig. 4.5", "Parallel efficiency, MOAT 1000", "simulated", efficiency),
    Figure("000", "Table 4.2", "TRTMA by workers: speedup and reuse", "simulated, planned", speedups),
    Figure("000", "§4.4", "4,276 tiles on 128 nodes", "simulated", large),
    Figure("001", "Fig. 11", "Weak scaling on CPUs and coprocessors", "simulated", hybrid),
    Figure("001", "Fig. 15", "Scalability of VBD 10,000", "simulated", by_vbd),
    Figure("003", "Fig. 8", "Scalability by cores and by nodes", "executed, simulated", by_cores_and_nodes),
]  # fmt: skip
