"""Writes the chapter "The papers, reproduced": the matrix of all figures, then a section for each."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frame import KINDS, Figure, Result, introductions, place, publish

PAPERS = {
    "000": "Thesis on multi-level computation reuse for sensitivity analysis",
    "001": "Article on efficient sensitivity analysis of pathology image analysis: reuse, scheduling, devices",
    "002": "Chen, Ferreira da Silva, Deelman and Sakellariou, *Using imbalance metrics to optimize task clustering in scientific "
    "workflow executions*. Its figures are pictures: values are compared where the text states them, else its claims",
    "003": "Scartezini, Barreiros, Kurc, Kong, Melo, Saltz and Teodoro, *Run-time parameter sensitivity analysis optimizations*",
    "004": "Ino, Matsuo, Mizutani and Hagihara, *Minimizing data size for efficient data reuse in grid-enabled medical applications*",
}


# Last column of a table of claims, whose cells are "holds", "does not hold" or a condition.
CLAIM_RESULT = "result"


@dataclass
class Outcome:
    """A figure with its result, or with the reason why it has none in this document."""

    figure: Figure
    result: Result | None = None
    missing: str = ""  # "not run yet", or the error


def write(path: Path, outcomes: Sequence[Outcome], mode: str, version: str, without_data: bool) -> None:
    """Writes the document, and its pictures to `images/papers` beside it. Pictures of earlier documents are removed."""
    pictures = path.parent / "images" / "papers"
    drawn = {}
    for outcome in outcomes:
        for picture in outcome.result.pictures if outcome.result else ():
            drawn[f"{outcome.figure.slug}-{picture.name}.svg"] = picture.svg
    for name, svg in drawn.items():
        publish(pictures / name, svg)
    for old in pictures.glob("*.svg") if pictures.is_dir() else ():
        if old.name not in drawn:
            old.unlink()
    publish(path, render(outcomes, mode, version, without_data))


def render(outcomes: Sequence[Outcome], mode: str, version: str, without_data: bool) -> str:
    """Returns the text of the document."""
    parts = [head(mode, version, without_data), matrix(outcomes)]
    texts = introductions()
    for paper, title in PAPERS.items():
        of_paper = [outcome for outcome in outcomes if outcome.figure.paper == paper]
        if of_paper:
            parts.append(f"## Paper {paper}\n\n{wrap(title + '.')}")
            if paper in texts:
                parts.append(wrap(texts[paper]))
            parts.extend(section(outcome) for outcome in of_paper)
    return "\n\n".join(parts) + "\n"


def head(mode: str, version: str, without_data: bool) -> str:
    """Returns the title and the introduction."""
    lines = [
        "# The papers, reproduced",
        "<!-- Written by benches/papers/run. Change its modules, not this file. -->",
        "Every results table and figure of the five papers: the published values, ours, and the reasons for differences. "
        "`benches/papers/run` measures them and writes this chapter. It continues after an interruption, because it keeps the "
        "value of each step.",
        f"This is the output of `benches/papers/run --{mode}` with {version}. Times are those of the machine in "
        "[benches/RESULTS.md](../benches/RESULTS.md); ratios compare with the papers, seconds do not. Wall times are means "
        "of interleaved replicates with 95 % intervals, compared by Welch's t-test as in 000 §4.1.",
    ]
    if without_data:
        lines.append(
            "The test data (`PLEACH_TEST_DATA`) is absent: workflows and tissue are generated, and figures that need the "
            "published traces are missing."
        )
    kinds = "\n".join(f"- **{kind}**: {meaning}." for kind, meaning in KINDS.items())
    return "\n\n".join([lines[0], lines[1], *map(wrap, lines[2:]), kinds])


def matrix(outcomes: Sequence[Outcome]) -> str:
    """Returns the table of all figures by kind, a row for each name."""
    rows = []
    for outcome in outcomes:
        for name in outcome.figure.names:
            mark = "yes" if outcome.result or not outcome.figure.run else "missing"
            given = outcome.figure.kind.split(", ")
            cells = [mark if kind in given else "" for kind in KINDS]
            rows.append((name, [f"[{name}](#{anchor(heading(outcome.figure))})", outcome.figure.title, *cells]))
    rows.sort(key=lambda row: (row[0].split(" ", 1)[0], place(row[0].split(" ", 1)[1])))
    done = sum(bool(outcome.result) for outcome in outcomes)
    reasons = sum(outcome.figure.run is None for outcome in outcomes)
    missing = len(outcomes) - done - reasons
    count = f"{len(outcomes)} entries: {done} with values, {reasons} with a reason why they are not reproduced"
    count += f", {missing} missing." if missing else "."
    results = [
        row[-1]
        for outcome in outcomes
        for further in (outcome.result.tables if outcome.result else ())
        if further.columns[-1] == CLAIM_RESULT
        for row in further.rows
    ]
    if results:
        holds, fails = results.count("holds"), results.count("does not hold")
        count += f" Claims of texts, each checked on one or two workflows: {holds} hold, {fails} do not"
        count += f", {len(results) - holds - fails} have a condition." if len(results) > holds + fails else "."
    return "## All figures\n\n" + wrap(count) + "\n\n" + table(["figure", "content", *KINDS], [row for _, row in rows])


def heading(figure: Figure) -> str:
    """Returns the heading of a figure's section."""
    return f"{' = '.join(figure.names)}: {figure.title}"


def section(outcome: Outcome) -> str:
    """Returns the section of a figure."""
    figure, result = outcome.figure, outcome.result
    parts = [f"### {heading(figure)}"]
    if figure.run is None:
        return "\n\n".join([*parts, wrap(f"*Not reproduced.* {figure.reason}")])
    if result is None:
        return "\n\n".join([*parts, wrap(f"*Missing.* {outcome.missing}")])
    parts.append(wrap(f"*{figure.kind.capitalize()}.* {result.setting}".strip()))
    if result.rows:
        parts.append(table(result.columns, result.rows))
    for further in result.tables:
        if further.caption:
            parts.append(wrap(further.caption))
        parts.append(table(further.columns, further.rows))
    parts.extend(f"![{one_line(picture.alt)}](images/papers/{figure.slug}-{picture.name}.svg)" for picture in result.pictures)
    if result.why:
        agreed = result.why.startswith("They agree")
        parts.append(wrap(result.why if agreed else f"Why they differ: {result.why}"))
    return "\n\n".join(parts)


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns a Markdown table. A row has a cell for each column."""
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"a row of {len(row)} cells, {row[:2]}; a cell for each of the {len(columns)} columns is needed")
    lines = [list(columns), ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(one_line(cell) for cell in line) + " |" for line in lines)


def one_line(cell: Any) -> str:
    """Returns a cell as text: without line breaks, and with bars escaped."""
    return " ".join(str(cell).split()).replace("|", "\\|")


def anchor(text: str) -> str:
    """Returns the anchor that GitHub and mdBook generate for a heading."""
    kept = (letter for letter in text.strip().lower() if letter.isalnum() or letter in " -_")
    return "".join("-" if letter == " " else letter for letter in kept)


def wrap(text: str) -> str:
    """Returns a paragraph in lines of up to 130 characters, as in the other chapters. Blank lines separate paragraphs."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    options: Mapping[str, Any] = {"width": 130, "break_long_words": False, "break_on_hyphens": False}
    return "\n\n".join("\n".join(textwrap.wrap(part, **options)) for part in paragraphs if part)
