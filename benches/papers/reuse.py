"""Wall time of studies by strategy of reuse: 000 Figs. 4.1 to 4.3 (001 Figs. 12 and 13), and 003 Fig. 6."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import chart
import reuse_designs as designs
import reuse_studies as studies
import welch
from frame import Context, Figure, Picture, Result, Table, percent
from reuse_planned import costs

Runs = dict[str, list[dict[str, Any]]]


def measure(context: Context, kind: str, evaluations: int, names: Sequence[str]) -> Runs:
    """Replicates of a study by these strategies. Figures with the same study share its steps."""
    path, _, identity = studies.tile(context, kind)
    if kind == "MOAT":
        text = studies.study("tiles/*", studies.moat(evaluations))
    else:
        text = studies.study("tiles/*", {"kind": "vbd", "samples": evaluations // 10, "base": "lhs"}, studies.eight())

    def variant(name: str) -> Any:
        return lambda: studies.run(context, [path], text, studies.STRATEGIES[name])

    variants = {name: variant(name) for name in names if name != "SCA" or evaluations <= studies.SCA_LIMIT}
    found = context.replicates(
        f"{kind} of {evaluations} evaluations", variants, studies.REPLICATES,
        tile=identity, study=text, workers=context.cores, options=studies.STRATEGIES,
    )  # fmt: skip
    studies.check([record for records in found.values() for record in records])
    return found


def sizes_of_moat(context: Context) -> tuple[int, ...]:
    """Evaluations of MOAT. Published: 160 to 640, in 001 from 75."""
    return context.choose((64, 160), (160, 320, 480, 640))


def seconds(records: Sequence[Mapping[str, Any]], what: str = "seconds") -> list[float]:
    """A value of each replicate."""
    return [record[what] for record in records]


def ratio(runs: Runs, slow: str, fast: str) -> str:
    """Speedup with its interval and test, and that of processor seconds."""
    found = welch.speedup(seconds(runs[slow]), seconds(runs[fast]))
    test = welch.welch(seconds(runs[slow]), seconds(runs[fast]))
    return f"{found}, {test} (processor time {work(runs, slow, fast):.2f})"


def work(runs: Runs, slow: str, fast: str) -> float:
    """Ratio of processor seconds."""
    return math.fsum(seconds(runs[slow], "cpu")) / math.fsum(seconds(runs[fast], "cpu"))


def best(sizes: Mapping[int, Runs], slow: str, fast: str) -> str:
    """The largest speedup over the sizes, in words."""
    have = {size: runs for size, runs in sizes.items() if fast in runs}
    size = max(have, key=lambda size: welch.speedup(seconds(have[size][slow]), seconds(have[size][fast])).mean)
    return f"{ratio(have[size], slow, fast)}, at {size}"


def reuse(record: Mapping[str, Any]) -> float:
    """Share of the tasks of the segmentation, after stage-level merging, that the tree saved."""
    saved = record["reused"]["tree"]
    executed = sum(count for name, (count, _) in record["tasks"].items() if name in studies.OPERATIONS)
    # One task of each operation computes the reference.
    return saved / (saved + executed - len(studies.OPERATIONS))


def task_seconds(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Seconds of all tasks of the normalization and of the segmentation, over the replicates."""
    spent = {"normalization": 0.0, "segmentation": 0.0}
    for record in records:
        for name, (_, taken) in record["tasks"].items():
            stage = "normalization" if name == "nuclei.normalize" else "segmentation" if name in studies.OPERATIONS else ""
            if stage:
                spent[stage] += taken
    return spent


def times(sizes: Mapping[int, Runs]) -> Table:
    """All means: wall seconds, milliseconds of merging, processor seconds, executed tasks."""
    rows = []
    for size, runs in sizes.items():
        for name, records in runs.items():
            planning = welch.mean([1e3 * value for value in seconds(records, "planning")])
            rows.append(
                [size, name, welch.mean(seconds(records)), f"{planning.mean:.1f}", f"{welch.mean(seconds(records, 'cpu')).mean:.2f}",
                 f"{records[0]['executed']:,}"]
            )  # fmt: skip
    columns = ["evaluations", "version", "wall time, s", "merging, ms", "processor time, s", "tasks executed"]
    return Table(columns, rows, "Means of the replicates with 95 % intervals:")


def picture(title: str, sizes: Mapping[int, Runs], alt: str) -> Picture:
    """Bars of wall time, with intervals."""
    groups, errors = {}, {}
    for size, runs in sizes.items():
        for name, records in runs.items():
            found = welch.mean(seconds(records))
            groups.setdefault(str(size), {})[name] = found.mean
            errors[str(size), name] = found.half
    return Picture("times", alt, chart.bars(title, groups, "wall time, s, by evaluations", errors=errors))


def merging(context: Context) -> tuple[list[list[Any]], float, float]:
    """Planning seconds of SCA and RTMA by the number of instances, the fastest of three: rows, the fitted exponent, and the seconds it gives for 640."""
    found = []
    for evaluations in (48, 96, 144, 192):
        sets = designs.moat(evaluations)
        planned = []
        for name in ("sca", "rtma"):
            options = ("--strategy", name, "--reuse", "tree", "--max-bucket-size", studies.SIZE)
            # The fastest of three: other work on the machine only adds to it.
            plans = [studies.plan(context, f"MOAT {evaluations}, {number}", sets, *options) for number in range(3)]
            planned.append(min(plans, key=lambda found: found["planning_seconds"]))
        found.append((evaluations, *planned))
    rows = [
        [size, percent(share(sca), 2), percent(share(rtma), 2), f"{sca['planning_seconds']:.3f}", f"{rtma['planning_seconds']:.4f}"]
        for size, sca, rtma in found
    ]
    points = [(math.log(size), math.log(sca["planning_seconds"])) for size, sca, _ in found]
    middle = [sum(values) / len(points) for values in zip(*points, strict=True)]
    exponent = sum((x - middle[0]) * (y - middle[1]) for x, y in points) / sum((x - middle[0]) ** 2 for x, _ in points)
    return rows, exponent, math.exp(middle[1] + exponent * (math.log(640) - middle[0]))


def share(planned: Mapping[str, Any]) -> float:
    """Reuse of the tasks of the segmentation by a plan."""
    return studies.segmentation(planned)["reuse_fraction"]


def by_moat(context: Context) -> Result:
    """Thesis Fig. 4.1, paper 001 Fig. 12."""
    names = list(studies.STRATEGIES)
    sizes = {size: measure(context, "MOAT", size, names) for size in sizes_of_moat(context)}
    rows, exponent, extrapolated = merging(context)
    last = max(sizes)
    largest = sizes[last]
    # Of 640 evaluations, by the time of the most that were run.
    execution = welch.mean(seconds(largest["RTMA"], "execution")).mean * 640 / last
    gains = ", ".join(
        f"{welch.speedup(seconds(runs['stage level']), seconds(runs['RTMA'])).mean:.2f} at {size}" for size, runs in sizes.items()
    )
    _, words, _ = studies.tile(context)
    spent = costs(context)
    tasks = sum(spent[task] for task in designs.TASKS)
    parts = task_seconds(largest["no reuse"])
    return Result(
        rows=[
            ["stage level against no reuse, at best", "1.85 (001: 1.8)", best(sizes, "no reuse", "stage level")],
            ["the same on a larger tile, by the task times of 000 Table 4.3", "", f"{(spent['normalization'] + tasks) / (spent['normalization'] / last + tasks):.2f}"],
            ["Naïve against stage level, at best", "1.08", best(sizes, "stage level", "Naïve")],
            ["SCA against stage level, at best", "1.39", best(sizes, "stage level", "SCA")],
            ["RTMA against stage level, at best", "1.5", best(sizes, "stage level", "RTMA")],
            ["RTMA against no reuse, at best", "2.61 (001: 2.6)", best(sizes, "no reuse", "RTMA")],
            ["gain of RTMA on stage level rises with the sample", "yes", gains],
            [f"reuse of tasks, RTMA at {last}", "about 33 %", percent(reuse(largest["RTMA"][0]))],
            ["reuse of tasks, SCA", "about 33 %", f"{percent(reuse(sizes[160]['SCA'][0]))} at 160"],
            ["SCA's merging in the whole time, at 640", "26 %",
             f"{percent(extrapolated / (extrapolated + execution), 0)}, extrapolated: {extrapolated:.0f} s beside {execution:.1f} s"],
            ["pleach's default against RTMA", "", ratio(largest, "RTMA", "pleach's default") + f", at {last}"],
        ],
        why="Stage level saves the normalization of the tile for all evaluations but one. It gains as much as the normalization takes: "
        f"{parts['normalization'] / parts['segmentation']:.1f} times the segmentation on this tile, 0.85 by the published speedup, "
        f"{spent['normalization'] / tasks:.2f} on the tile of 000 Table 4.3, because a part of the normalization does not depend on the size of the tile. "
        "Naïve depends on the order of the sample, and the authors' order is unknown: here consecutive evaluations of a trajectory differ in one parameter, so "
        f"{studies.SIZE} of them share {percent(reuse(largest['Naïve'][0]))} of their tasks. "
        "The share of SCA's merging depends on the tasks beside it: merging takes the same time for any tile, and tasks take longer on larger ones. "
        f"pleach refuses SCA for more than {studies.SCA_LIMIT} instances of a tile. Its time grows with the power {exponent:.1f} of their "
        "number in the table below (published bound: 4), and the value at 640 extrapolates this power. Processor times compare the versions where "
        "other work shares the processors.",
        setting=f"MOAT of 15 parameters with base points of Halton's sequence on {words}, {context.cores} workers, MaxBucketSize "
        f"{studies.SIZE}, {studies.REPLICATES} interleaved replicates. Published: 160 to 640 evaluations, tiles of 4,096 px on 6 nodes (001: 75 to 640, 16 nodes). All versions have equal responses.",
        pictures=[picture("MOAT by reuse", sizes, "Wall time of MOAT without reuse, by stage level, Naïve, SCA, RTMA and pleach's default")],
        tables=[
            times(sizes),
            Table(["instances", "reuse, SCA", "RTMA", "merging, s, SCA", "RTMA"], rows, "Merging of MOAT designs (planned, the fastest of three):"),
        ],
    )  # fmt: skip


def by_vbd(context: Context) -> Result:
    """Thesis Fig. 4.2, paper 001 Fig. 13."""
    names = [name for name in studies.STRATEGIES if name != "SCA"]
    sizes = {size: measure(context, "VBD", size, names) for size in context.choose((100,), (2000, 4000, 6000, 8000, 10000))}
    _, exponent, extrapolated = merging(context)
    last = max(sizes)
    _, words, _ = studies.tile(context, "VBD")
    bound = extrapolated * (2000 / 640) ** exponent
    return Result(
        rows=[
            ["RTMA against no reuse, at best", "2.9 (thesis, end: 2.89)", best(sizes, "no reuse", "RTMA")],
            ["RTMA against stage level, at best", "1.51", best(sizes, "stage level", "RTMA")],
            ["stage level against no reuse, at best", "1.9 (thesis, end)", best(sizes, "no reuse", "stage level")],
            [f"reuse of tasks, RTMA at {last:,}", "at most 35 % (at 10,000)", percent(reuse(sizes[last]["RTMA"][0]))],
            ["SCA's merging at 2,000", "not within 14,000 s", f"refused; {bound:,.0f} s by the power fitted for Fig. 4.1"],
            [f"pleach's default against RTMA, at {last:,}", "", ratio(sizes[last], "RTMA", "pleach's default")],
        ],
        why=context.choose(
            f"{last} evaluations in place of 2,000 to 10,000: rows of a Saltelli design share tasks among themselves, so that reuse hardly depends on their number. ",
            "",
        )
        + "Connectivities are 4 or 8 here, because pleach refuses values between them, and the authors' inputs have real values from 4 to 8. "
        "More instances are equal for that reason. Stage level differs from the published gain for the reason given at Fig. 4.1. "
        "SCA is not executed: pleach refuses it beyond "
        f"{studies.SCA_LIMIT} instances of a tile.",
        setting=f"VBD of the eight parameters of the authors' input ({', '.join(designs.EIGHT)}) by Latin hypercubes (thesis §4.3) on "
        f"{words}, {context.cores} workers, MaxBucketSize {studies.SIZE}, {studies.REPLICATES} interleaved replicates; published: 16 nodes (001: 32).",
        pictures=[picture("VBD by reuse", sizes, "Wall time of VBD without reuse, by stage level, Naïve, RTMA and pleach's default")],
        tables=[times(sizes)],
    )


def by_bucket_size(context: Context) -> Result:
    """Thesis Fig. 4.3."""
    path, words, identity = studies.tile(context)
    evaluations = context.choose(64, 640)
    text = studies.study("tiles/*", studies.moat(evaluations))
    options = ["--strategy", "rtma", "--reuse", "tree", "--max-bucket-size"]

    def variant(size: int) -> Any:
        return lambda: studies.run(context, [path], text, [*options, size])

    found = context.replicates(
        "MaxBucketSize of RTMA",
        {str(size): variant(size) for size in range(2, 9)},
        studies.REPLICATES, tile=identity, study=text, workers=context.cores,
    )  # fmt: skip
    studies.check([record for records in found.values() for record in records])
    sets = designs.moat(640)
    planned = {
        size: share(studies.plan(context, "MOAT 640", sets, "--strategy", "rtma", "--reuse", "tree", "--max-bucket-size", size))
        for size in range(2, 9)
    }
    ends = found["2"], found["8"]
    less = 1 - welch.mean(seconds(ends[1])).mean / welch.mean(seconds(ends[0])).mean
    spent = 1 - math.fsum(seconds(ends[1], "cpu")) / math.fsum(seconds(ends[0], "cpu"))
    rows = [
        [size, welch.mean(seconds(records)), f"{welch.mean(seconds(records, 'cpu')).mean:.2f}", percent(reuse(records[0])), percent(planned[int(size)])]
        for size, records in found.items()
    ]  # fmt: skip
    means = {size: welch.mean(seconds(records)) for size, records in found.items()}
    groups = {size: {"wall time": value.mean} for size, value in means.items()}
    errors = {(size, "wall time"): value.half for size, value in means.items()}
    return Result(
        rows=[
            ["time saved from MaxBucketSize 2 to 8", "up to 12 %", f"{percent(less)}, {welch.welch(*map(seconds, ends))} (processor time {percent(spent)})"],
            ["reuse at which it ends", "about 33 %", f"{percent(reuse(found['8'][0]))} (planned for the authors' design: {percent(planned[8])})"],
        ],
        why="The planned column is for points as PSUADE draws them, the executed one for pleach's own design with base points of Halton's sequence. "
        "The rest of the time (normalization, comparison, "
        "indices, report) does not depend on the size of buckets.",
        setting=f"MOAT of {evaluations} evaluations by RTMA on {words}, {context.cores} workers, {studies.REPLICATES} interleaved replicates.",
        pictures=[
            Picture("sizes", "Wall time of RTMA by MaxBucketSize", chart.bars(f"RTMA by MaxBucketSize, MOAT {evaluations}", groups, "wall time, s", errors=errors))
        ],
        tables=[Table(["MaxBucketSize", "wall time, s", "processor time, s", "reuse", "planned, authors' design"], rows)],
    )


def of_paper_003(context: Context) -> Result:
    """Paper 003 Fig. 6: two sizes of MOAT. The smaller is a drawing; 640 is in the text."""
    names = ("no reuse", "stage level", "RTMA")
    most = max(sizes_of_moat(context))
    sizes = {size: measure(context, "MOAT", size, list(studies.STRATEGIES)) for size in (min(sizes_of_moat(context)), most)}
    sizes = {size: {name: runs[name] for name in names} for size, runs in sizes.items()}
    first, last = sizes.values()
    parts = task_seconds(last["no reuse"])
    gains = [welch.speedup(seconds(runs["no reuse"]), seconds(runs["RTMA"])) for runs in (first, last)]
    return Result(
        rows=[
            ["stage level against no reuse, 640", "1.7", f"{ratio(last, 'no reuse', 'stage level')}, at {most}"],
            ["RTMA against no reuse, 640", "2.6", f"{ratio(last, 'no reuse', 'RTMA')}, at {most}"],
            ["RTMA against stage level, 640", "1.5", f"{ratio(last, 'stage level', 'RTMA')}, at {most}"],
            ["RTMA gains more with the larger sample", "yes", f"{gains[0]} at {min(sizes)}, {gains[1]} at {most}"],
        ],
        why=f"As for 000 Fig. 4.1, whose runs these are: the normalization takes {parts['normalization'] / parts['segmentation']:.1f} times the segmentation "
        "on this tile, and 0.7 by the published speedup. The text does not state the smaller sample of the drawing.",
        setting=f"The runs of 000 Fig. 4.1, on {studies.tile(context)[1]}.",
        pictures=[picture("MOAT by reuse", sizes, "Wall time of MOAT without reuse, by stage level and by RTMA")],
    )


FIGURES = [
    Figure("000", "Fig. 4.1", "Reuse of MOAT, wall time", "executed, planned", by_moat, same=["001 Fig. 12"]),
    Figure("000", "Fig. 4.2", "Reuse of VBD, wall time", "executed", by_vbd, same=["001 Fig. 13"]),
    Figure("000", "Fig. 4.3", "Wall time by MaxBucketSize", "executed, planned", by_bucket_size),
    Figure("003", "Fig. 6", "Wall time of MOAT by reuse", "executed", of_paper_003),
]
