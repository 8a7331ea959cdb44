"""Plans and costs of tasks: 000 Tables 4.1 and 4.3, Fig. 4.6, and 001 Fig. 16 and Table 5."""

from __future__ import annotations

import math
from typing import Any

import chart
import reuse_designs as designs
import reuse_studies as studies
from clustering_choice import rank_correlation
from frame import Context, Figure, Picture, Result, Table, percent

TREE = ("--reuse", "tree")
# A bucket of all instances has all reuse that the tree has.
ALL = 10**6


def maximum_reuse(context: Context) -> Result:
    """Thesis Table 4.1, paper 001 Table 5."""
    published = {"mc": (36.35, 36.46, 36.40), "lhs": (36.62, 36.44, 36.44), "halton": (35.10, 34.44, 33.48)}
    names = {"mc": "Monte Carlo", "lhs": "Latin hypercube", "halton": "quasi-Monte Carlo (Halton)"}
    rows, groups, marks = [], {}, {}
    for sampler, values in published.items():
        for samples, found in zip((200, 600, 1000), values, strict=True):
            sets = designs.vbd(sampler, samples)
            options = ("--strategy", "naive", *TREE, "--max-bucket-size", ALL)
            planned = studies.plan(context, f"VBD {10 * samples} by {sampler}", sets, *options)
            reuse = studies.segmentation(planned)["reuse_fraction"]
            rows.append([f"{names[sampler]}, {10 * samples:,} runs", f"{found:.2f} %", percent(reuse, 2)])
            groups.setdefault(str(10 * samples), {})[names[sampler]] = 100 * reuse
            marks[str(10 * samples), names[sampler]] = found
    return Result(
        rows=rows,
        setting="Plans of the authors' VBD of eight parameters, real values truncated where their code truncates. Reuse of tasks after "
        "equal stage instances are merged: a plan with all instances of a tile in one bucket.",
        why="Samples are drawn again with another generator, which moves values by about .1. For Halton's sequence the published "
        "reuse falls with the sample. Ours does not: the dimensions that the authors gave to the two matrices are not published.",
        pictures=[
            Picture(
                "reuse", "Maximum reuse of VBD by sampler and number of runs, with the published values",
                chart.bars("Maximum reuse of VBD", groups, "reuse of tasks, %, by runs", published=marks),
            )
        ],
    )  # fmt: skip


def costs(context: Context) -> dict[str, float]:
    """Mean seconds of each task and of the normalization ("normalization") on one worker, for a trajectory of MOAT.

    Quick: a tile of 2,048 px. Full: the mean of 5 runs on one of 4,096 px.
    """
    side, count = context.choose((2048, 1), (4096, 5))
    path = studies.tissue(context, side) / "tissue_01.png"
    text = studies.study("tiles/*", studies.moat(16))
    options = [*studies.STRATEGIES["no reuse"], "--active-paths", 1]
    found = context.replicates(
        "costs of tasks",
        {"no reuse": lambda: studies.run(context, [path], text, options, workers=1)},
        count, tile=f"tissue {side}", study=text,
    )  # fmt: skip
    names = studies.OPERATIONS | {"nuclei.normalize": "normalization"}
    return {
        name: math.fsum(run["tasks"][operation][1] for run in found["no reuse"])
        / sum(run["tasks"][operation][0] for run in found["no reuse"])
        for operation, name in names.items()
    }


def table_of_costs(context: Context) -> Result:
    """Thesis Table 4.3."""
    ours = costs(context)
    total, published_total = (sum(seconds[task] for task in designs.TASKS) for seconds in (ours, designs.SECONDS))
    rows, groups = [], {}
    for task, published in designs.SECONDS.items():
        rows.append([task, f"{published:.2f} s", percent(published / published_total), f"{ours[task]:.3f} s", percent(ours[task] / total)])
        groups[task] = {"published": 100 * published / published_total, "ours": 100 * ours[task] / total}
    rows.append(["total", f"{published_total:.2f} s", "100 %", f"{total:.3f} s", "100 %"])
    side = context.choose(2048, 4096)
    shares = [[seconds[task] for task in designs.TASKS] for seconds in (designs.SECONDS, ours)]
    return Result(
        columns=["task", "published", "share", "ours", "share"],
        rows=rows,
        tables=[
            Table(
                ["", "published", "ours"],
                [
                    ["rank correlation of the costs", "", f"{rank_correlation(*shares):.2f}"],
                    ["normalization / segmentation", "0.77 (2.46 / 3.18 of the authors' program on one core)", f"{ours['normalization'] / total:.2f}"],
                ],
            )
        ],
        setting=f"Mean seconds of the tasks of 16 evaluations of MOAT on a generated tile of {side:,} × {side:,} px, one worker, one task at a time.",
        why="The tasks are other implementations on another machine and another tile, and the thesis gives its costs as relative ones. "
        "The watershed (t6) and the reconstruction (t2) are the most expensive in both. Area filters (t3, t4, t7) take a smaller share here.",
        pictures=[Picture("shares", "Shares of the seven tasks, published and ours", chart.bars("Cost of tasks", groups, "share of the segmentation, %"))],
    )  # fmt: skip


def two_buckets(context: Context) -> Result:
    """Thesis Fig. 4.6: two buckets of nine tasks with other costs."""
    first = [designs.DEFAULTS | {"minSizeSeg": size} for size in (10, 20, 30)]
    second = [designs.DEFAULTS | {"minSizePl": size} for size in (10, 20)]
    options = ("--strategy", "naive", *TREE, "--max-bucket-size", 3)
    plans = [studies.segmentation(studies.plan(context, "Fig. 4.6", sets, *options)) for sets in (first, second)]
    total = sum(designs.SECONDS.values())
    once = [1 + 2 * designs.SECONDS["t7"] / total, 1 + (designs.SECONDS["t6"] + designs.SECONDS["t7"]) / total]
    instance = studies.segmentation(studies.plan(context, "Fig. 4.6, one instance", first[:1], *options))["max_bucket_cost"]
    modeled = [found["max_bucket_cost"] / instance for found in plans]
    return Result(
        columns=["", "published", "ours", "ours, pleach's cost model"],
        rows=[
            ["tasks, bucket 1 and bucket 2", "equal", f"{plans[0]['tasks']} and {plans[1]['tasks']}", ""],
            ["cost of bucket 1, in stages", "1.18", f"{once[0]:.2f}", f"{modeled[0]:.2f}"],
            ["cost of bucket 2", "1.48", f"{once[1]:.2f}", f"{modeled[1]:.2f}"],
            ["bucket 2 / bucket 1", "1.25", f"{once[1] / once[0]:.2f}", f"{modeled[1] / modeled[0]:.2f}"],
        ],
        setting="Bucket 1 has three instances that differ in t7 only, bucket 2 two that differ from t6 on. Tasks are those of pleach's plan, costs those of Table 4.3.",
        why="The thesis rounds the parts to two digits before it adds them. pleach balances by costs, so a plan sees the difference.",
    )


def planning_time(context: Context) -> Result:
    """Paper 001 Fig. 16."""
    limits = (24, 96, 384, 1536)
    sizes = context.choose((100, 300, 1000), (100, 300, 1000, 3000, 10_000))
    series: dict[str, list[tuple[float, float]]] = {f"{limit} buckets": [] for limit in limits}
    rows = []
    for samples in sizes:
        sets = designs.vbd("mc", samples)
        cells: list[Any] = []
        for limit in limits:
            options = ("--strategy", "trtma", *TREE, "--max-buckets", limit)
            # The fastest of three: other work on the machine only adds to it.
            plans = [studies.plan(context, f"VBD {10 * samples}, {number}", sets, *options) for number in range(3)]
            instances = studies.segmentation(plans[0])["instances"]
            fastest = min(found["planning_seconds"] for found in plans)
            cells.append(f"{1e3 * fastest:.1f}")
            series[f"{limit} buckets"].append((instances, 1e3 * fastest))
        rows.append([f"{int(series['24 buckets'][-1][0]):,}", *cells])
    exponents = {name: slope(points) for name, points in series.items()}
    largest = max(exponents.values())
    last = [points[-1][1] for points in series.values()]
    return Result(
        rows=[
            ["growth with the number of instances", "subquadratic", f"power {largest:.2f} at most: {'subquadratic' if largest < 2 else 'not subquadratic'}"],
            ["time falls as MaxBuckets rises", "yes", f"{last[0]:.1f} ms with 24, {last[-1]:.1f} ms with 1,536 buckets: {'yes' if last[-1] < last[0] else 'no'}"],
        ],
        tables=[Table(["instances", *(f"{limit} buckets, ms" for limit in limits)], rows, "Planning time of the whole study, the fastest of three:")],
        setting="Plans of VBD by Monte Carlo with TRTMA, as `pleach plan` reports their time: compact graph, reuse tree and buckets.",
        why="The published values are a drawing. The time here includes the compact graph of all stages, which does not depend on the number of buckets.",
        pictures=[
            Picture("time", "Planning time of TRTMA by instances and MaxBuckets",
                    chart.lines("Planning time of TRTMA", series, "instances", "ms", log_x=True))
        ],
    )  # fmt: skip


def slope(points: list[tuple[float, float]]) -> float:
    """Exponent of a power law, fitted to the logarithms."""
    logs = [(math.log(x), math.log(max(y, 1e-6))) for x, y in points]
    x_mean, y_mean = (math.fsum(values) / len(logs) for values in zip(*logs, strict=True))
    return math.fsum((x - x_mean) * (y - y_mean) for x, y in logs) / math.fsum((x - x_mean) ** 2 for x, _ in logs)


FIGURES = [
    Figure("000", "Table 4.1", "Maximum reuse by sampler", "planned", maximum_reuse, same=["001 Table 5"]),
    Figure("000", "Table 4.3", "Costs of the tasks", "executed", table_of_costs),
    Figure("000", "Fig. 4.6", "Buckets of equal tasks and unequal costs", "planned", two_buckets),
    Figure("001", "Fig. 16", "Planning time of TRTMA", "planned", planning_time),
]
