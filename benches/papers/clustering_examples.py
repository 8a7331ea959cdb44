"""Paper 002: worked examples of the model, the metrics and the methods (Figs. 3 to 13, Table 1)."""

from __future__ import annotations

from clustering_workflows import claims, cluster, dag, example, jobs
from frame import Context, Figure, Result, number

FIG_3 = dag({"t1": 10, "t2": 20, "t3": 30, "t4": 40}, {"t1": ["t2", "t3"], "t2": ["t4"], "t3": ["t4"]})
FIG_4 = dag(
    {"t1": 10, "t2": 40, "t3": 10, "t4": 10, "t5": 30, "t6": 20, "t7": 30, "t8": 10},
    {"t1": ["t2", "t3"], "t2": ["t4"], "t3": ["t5"], "t4": ["t6"], "t5": ["t7"], "t6": ["t8"], "t7": ["t8"]},
)
FIG_12 = dag(
    {"r": 10, "a1": 40, "b1": 30, "c1": 20, "d1": 10, "a2": 40, "b2": 10, "c2": 30, "d2": 20, "s": 10},
    {"r": ["a1", "b1", "c1", "d1"], "a1": ["a2"], "b1": ["b2"], "c1": ["c2"], "d1": ["d2"]}
    | {chain: ["s"] for chain in ("a2", "b2", "c2", "d2")},
)
FIG_5 = dag({"t1": 10, "t2": 10, "t3": 30, "t4": 30}, {})
FIG_7_LEFT = dag(
    dict.fromkeys(["t1", "t2", "t3", "t4", "t5", "t6", "t7"], 10),
    {"t1": ["t5"], "t2": ["t5"], "t3": ["t6"], "t4": ["t6"], "t5": ["t7"], "t6": ["t7"]},
)
FIG_7_RIGHT = dag(
    dict.fromkeys(["t1", "t2", "t3", "t4", "t5", "t6", "t7"], 10),
    {"t1": ["t5"], "t2": ["t6"], "t3": ["t6"], "t4": ["t6"], "t5": ["t7"], "t6": ["t7"]},
)
# Fig. 8: HRB merges t1 with t3 and t2 with t4, so run times are those of Fig. 5.
FIG_8 = dag(
    {"t1": 10, "t2": 10, "t3": 30, "t4": 30, "t5": 10, "t6": 10, "t7": 10},
    {"t1": ["t5"], "t2": ["t5"], "t3": ["t6"], "t4": ["t6"], "t5": ["t7"], "t6": ["t7"]},
)
FIG_9 = dag(
    dict.fromkeys(["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"], 10),
    {"t1": ["t6"], "t2": ["t6"], "t3": ["t7"], "t4": ["t7"], "t5": ["t7"], "t6": ["t8"], "t7": ["t8"]},
)
# All distances of t1 to t5 are 2, over t6. t2 and t5 have a second child.
FIG_11 = dag(
    dict.fromkeys(["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"], 10),
    {"t1": ["t6"], "t2": ["t6", "t7"], "t3": ["t6"], "t4": ["t6"], "t5": ["t6", "t7"], "t6": ["t8"], "t7": ["t8"]},
)


def names(found: list[list[str]], among: str) -> str:
    """Jobs of the tasks `among`, such as "{t1, t2}, {t3, t4}"."""
    wanted = among.split()
    chosen = sorted(sorted(job) for job in found if any(task in wanted for task in job))
    return ", ".join("{" + ", ".join(job) + "}" for job in chosen)


def fig_3(context: Context) -> Result:
    """Formula of the run time on one worker, before and after clustering."""
    workflow, queue, delay = example("fig-3", FIG_3), 60.0, 1.0
    options = ["--method", "hc", "--jobs", 1, "--workers", 1, "--queue", queue, "--clustering", delay]
    found = cluster(context, workflow, *options)
    left = 4 * queue + 100
    right = 3 * queue + delay + 100
    return Result(
        rows=[
            ["left: Σ (s + t)", f"{left:.0f} s", f"{found['makespan_unclustered_seconds']:.0f} s"],
            ["right: s1 + t1 + s2 + c1 + t2 + t3 + s4 + t4", f"{right:.0f} s", f"{makespan(found):.0f} s"],
        ],
        setting="Tasks of 10, 20, 30 and 40 s on one worker, s = 60 s and c = 1 s. The published values are those of its formula.",
        why="They agree.",
    )


def makespan(found: dict) -> float:
    """Makespan of the clustering that was asked for."""
    return found["clusterings"][found["shown"]]["makespan_seconds"]


def fig_5(context: Context) -> Result:
    """HRV of unequal and of balanced jobs."""
    workflow = example("fig-5", FIG_5)
    unequal = cluster(context, workflow, "--method", "dfjs", "--max-seconds", 40)
    balanced = cluster(context, workflow, "--method", "hrb", "--jobs", 2)
    return Result(
        rows=[
            ["top: unequal jobs", "HRV > 0", f"HRV {number(unequal['levels_after'][0]['hrv'])}, tasks in file order"],
            ["bottom: balanced jobs", "HRV = 0", f"HRV {number(balanced['levels_after'][0]['hrv'])}, by HRB"],
        ],
        why="They agree.",
        setting="Tasks of 10, 10, 30 and 30 s.",
    )


def fig_7(context: Context) -> Result:
    """Metrics of the first levels."""
    rows = []
    published = {"left": ("0", "1.03"), "right": ("0.17", "1.10")}
    for side, text in (("left", FIG_7_LEFT), ("right", FIG_7_RIGHT)):
        level = cluster(context, example(f"fig-7-{side}", text), "--method", "none")["levels_before"][0]
        rows.append([f"{side}: HIFV of t1 to t4", published[side][0], number(level["hifv"])])
        rows.append([f"{side}: HDV of t1 to t4, from the matrix of Table 1", published[side][1], f"{level['hdv']:.3f}"])
    return Result(
        rows=rows,
        setting="Metrics by the reading `definition` (sample deviations).",
        why="They agree to the digits printed. HDV is the deviation of the distances {2, 4, 4, 4, 4, 2} and {4, 4, 4, 2, 2, 2}.",
    )


def fig_8(context: Context) -> Result:
    """Jobs of HRB."""
    found = jobs(context, example("fig-8", FIG_8), "--method", "hrb", "--jobs", 2)
    return Result(
        rows=[["jobs of the first level", "{t1, t3}, {t2, t4}", names(found, "t1 t2 t3 t4")]],
        setting="Tasks of 10, 10, 30 and 30 s, as in Fig. 5. The figure prints no run times.",
        why="They agree.",
    )


def both_readings(context: Context, workflow: str, text: str, method: str, count: int, among: str) -> list[str]:
    """Jobs of a method by both readings of its candidates."""
    return [
        names(jobs(context, example(workflow, text), "--method", method, "--jobs", count, "--candidates", reading), among)
        for reading in ("examples", "spread")
    ]


def fig_9(context: Context) -> Result:
    """Jobs of HIFB, and HDB on the same graph."""
    tasks = "t1 t2 t3 t4 t5"
    examples, spread = both_readings(context, "fig-9", FIG_9, "hifb", 3, tasks)
    same, _ = both_readings(context, "fig-9", FIG_9, "hdb", 3, tasks)
    return Result(
        rows=[
            ["jobs of HIFB, candidates as in the examples", "{t1, t2}, {t3, t4}, {t5}", examples],
            ["jobs of HDB, candidates as in the examples", "as HIFB", same],
            ["jobs of HIFB, default candidates", "", spread],
        ],
        setting="Tasks of equal run time in three jobs, IF = 0.25 (t1, t2) and 0.17 (t3 to t5).",
        why="the examples fill near jobs first (`--candidates examples`). The default (`spread`) also considers empty jobs, because "
        "the examples' rule stacks long tasks: by it most workflows would lose what the text gains (Fig. 20).",
    )


def fig_10(context: Context) -> Result:
    """Jobs of HDB on a symmetric graph."""
    tasks = "t1 t2 t3 t4"
    examples, spread = both_readings(context, "fig-7-left", FIG_7_LEFT, "hdb", 2, tasks)
    return Result(
        rows=[
            ["jobs of HDB, candidates as in the example", "{t1, t2}, {t3, t4}", examples],
            ["jobs of HDB, default candidates", "", spread],
        ],
        setting="Tasks of equal run time in two jobs.",
        why="the example agrees by its own rule of candidates; see Fig. 9 for the default.",
    )


def fig_11(context: Context) -> Result:
    """Metrics and jobs of a level whose distances are equal and whose impact factors differ."""
    workflow = example("fig-11", FIG_11)
    level = cluster(context, workflow, "--method", "none")["levels_before"][0]
    tasks = "t1 t2 t3 t4 t5"
    by_impact, _ = both_readings(context, "fig-11", FIG_11, "hifb", 2, tasks)
    by_distance, _ = both_readings(context, "fig-11", FIG_11, "hdb", 2, tasks)
    return Result(
        rows=[
            ["HDV of t1 to t5: all distances are 2", "0", number(level["hdv"])],
            ["HIFV of t1 to t5", "> 0", number(level["hifv"])],
        ],
        tables=[
            claims(
                [
                    ("HDB does not see the difference in child tasks", by_distance, "{t2, t5}" not in by_distance),
                    ("HIFB distinguishes the tasks", by_impact, "{t2, t5}" in by_impact),
                ]
            )
        ],
        setting="Our graph, in two jobs with candidates as in the examples: five tasks with a common child, two of them with a second one. "
        "The graph of the figure is a picture.",
        why="They agree.",
    )


def fig_12(context: Context) -> Result:
    """VC before and after a balancing method, on four chains."""
    chains = jobs(context, example("fig-4", FIG_4), "--method", "none", "--vertical", "only")
    workflow, tasks = example("fig-12", FIG_12), "a1 a2 b1 b2 c1 c2 d1 d2"
    plain, prior, posterior = (
        jobs(context, workflow, "--method", "hrb", "--jobs", 2, "--vertical", vertical)
        for vertical in ("none", "prior", "posterior")
    )
    whole = all(sum(chain in "".join(job) for job in prior) == 1 for chain in ("a1a2", "b1b2", "c1c2", "d1d2"))
    same = sorted(map(sorted, posterior)) == sorted(map(sorted, plain))
    return Result(
        columns=("jobs", "", "ours"),
        rows=[
            ["Fig. 4: VC only", "{t2, t4, t6}, {t3, t5, t7}", names(chains, "t2 t3 t4 t5 t6 t7")],
            ["No-VC", "", names(plain, tasks)],
            ["VC-prior", "", names(prior, tasks)],
            ["VC-posterior", "", names(posterior, tasks)],
        ],
        tables=[
            claims(
                [
                    ("Fig. 12: chains are merged first, then clustered by run time", names(prior, tasks), whole),
                    ("Fig. 13: VC after clustering changes nothing, because chains are broken", names(posterior, tasks), same),
                ]
            )
        ],
        setting="Four chains of two tasks, two jobs a level, by HRB. The figures print no run times, so that jobs are not compared.",
        why="the claims hold for run times that mix the chains.",
    )


FIGURES = [
    Figure("002", "Fig. 3", "Run time on one worker, before and after clustering", "simulated", fig_3),
    Figure("002", "Fig. 5", "Horizontal runtime variance of two clusterings", "planned", fig_5),
    Figure("002", "Fig. 7", "Metrics of two workflows", "planned", fig_7, same=["002 Fig. 6", "002 Table 1"]),
    Figure("002", "Fig. 8", "Jobs of HRB", "planned", fig_8),
    Figure("002", "Fig. 9", "Jobs of HIFB", "planned", fig_9),
    Figure("002", "Fig. 10", "Jobs of HDB", "planned", fig_10),
    Figure("002", "Fig. 11", "Equal distances, unequal impact factors", "planned", fig_11),
    Figure("002", "Fig. 12", "Vertical clustering before and after a method", "planned", fig_12, same=["002 Fig. 4", "002 Fig. 13"]),
]
