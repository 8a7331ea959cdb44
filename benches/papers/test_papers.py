"""Tests of the frame: python3 -m unittest -v test_papers, in this folder. tests/commands/papers.rs runs them."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
import chart
import clustering_choice
import document
import frame
import welch
from frame import Context, Figure, NotRun, Picture, Result, Table

# Every results figure and table of the papers, and worked examples, by number.
PUBLISHED = {
    "000": [*(f"Fig. 4.{n}" for n in range(1, 7)), *(f"Table 4.{n}" for n in range(1, 4))],
    "001": [*(f"Fig. {n}" for n in range(11, 17)), "Table 3", "Table 5"],
    "002": [*(f"Fig. {n}" for n in (*range(3, 14), *range(19, 30))), *(f"Table {n}" for n in (1, 3, 4, 5))],
    "003": ["Fig. 6", "Fig. 7", "Fig. 8", "Table II"],
    "004": ["Table 2", "Fig. 8"],
}

KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from frame import Context
context = Context(Path({program!r}), Path({results!r}), log=lambda text: None)
def measure(number):
    with open({calls!r}, "a") as file:
        file.write(f"{{number}} ")
    if number == 2 and {kill}:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * 1.5
print(sum(context.step("measure", lambda number=number: measure(number), number=number) for number in range(4)))
"""


class FrameTest(unittest.TestCase):
    """A folder with a program for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program = self.folder / "program"
        self.program.write_text('#!/bin/sh\necho "{\\"args\\": \\"$*\\"}"\n')
        self.program.chmod(0o755)
        self.calls = 0

    def context(self, **fields):
        return Context(self.program, self.folder / "results", log=lambda text: None, **fields)

    def count(self):
        self.calls += 1
        return {"calls": self.calls}


class Steps(FrameTest):
    def test_a_kept_step_is_not_run_again(self):
        first = self.context().step("count", self.count, size=1)
        self.assertEqual(self.context().step("count", self.count, size=1), first)
        self.assertEqual(self.calls, 1)

    def test_other_inputs_names_or_programs_run_again(self):
        self.context().step("count", self.count, size=1)
        self.context().step("count", self.count, size=2)
        self.context().step("other", self.count, size=1)
        self.assertEqual(self.calls, 3)
        self.program.write_text(self.program.read_text() + "# changed\n")
        self.context().step("count", self.count, size=1)
        self.assertEqual(self.calls, 4)

    def test_a_fresh_value_has_the_types_of_a_kept_one(self):
        values = [self.context().step("tuple", lambda: {"pair": (1, 2), 3: "three"}) for _ in range(2)]
        self.assertEqual(values[0], {"pair": [1, 2], "3": "three"})
        self.assertEqual(values[0], values[1])

    def test_a_damaged_step_runs_again(self):
        context = self.context()
        context.step("count", self.count)
        path = self.folder / "results" / "steps" / f"{context.keys[-1]}.json"
        path.write_text(path.read_text()[:20])
        self.assertEqual(context.step("count", self.count), {"calls": 2})

    def test_a_failed_step_is_not_kept(self):
        with self.assertRaises(ZeroDivisionError):
            self.context().step("count", lambda: 1 / 0)
        self.assertEqual(self.context().step("count", self.count), {"calls": 1})

    def test_nan_is_refused(self):
        with self.assertRaises(ValueError):
            self.context().step("nan", lambda: math.nan)

    def test_only_stored_steps(self):
        with self.assertRaises(NotRun):
            self.context(only_stored=True).step("count", self.count)
        with self.assertRaises(NotRun):
            self.context(only_stored=True).run("plan")
        self.context().step("count", self.count)
        self.assertEqual(self.context(only_stored=True).step("count", self.count), {"calls": 1})

    def test_a_killed_run_loses_the_running_step_only(self):
        calls = self.folder / "calls"
        given = {"folder": str(frame.HERE), "program": str(self.program), "results": str(self.folder / "results")}
        runs = [
            subprocess.run([sys.executable, "-c", KILLED.format(calls=str(calls), kill=kill, **given)], capture_output=True)
            for kill in (True, False)
        ]
        self.assertEqual(runs[0].returncode, -signal.SIGKILL)
        self.assertEqual(runs[1].stdout.split(), [b"9.0"], runs[1].stderr)
        self.assertEqual(calls.read_text().split(), ["0", "1", "2", "2", "3"])
        self.assertEqual([path for path in (self.folder / "results").rglob(".new-*")], [])

    def test_leftovers_of_killed_runs_are_removed(self):
        scratch = self.folder / "results" / "scratch"
        dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
        (scratch / dead.stdout.strip() / "tile").mkdir(parents=True)
        with self.context().folder() as own:
            self.context().clean()
            self.assertEqual([path.name for path in scratch.iterdir()], [str(os.getpid())])
            self.assertTrue(own.is_dir())
        self.assertFalse(own.exists())

    def test_inputs_of_any_name(self):
        for inputs in ({"name": 1}, {"compute": 1}, {"count": 1}):
            self.context().step("count", self.count, **inputs)
        self.assertEqual(self.calls, 3)

    def test_replicates_are_interleaved_and_extended(self):
        order = []

        def variant(name):
            return lambda: order.append(name) or len(order)

        variants = {name: variant(name) for name in ("slow", "fast")}
        self.context().replicates("race", variants, 2)
        self.assertEqual(order, ["slow", "fast", "slow", "fast"])
        values = self.context().replicates("race", variants, 3)
        self.assertEqual(order, ["slow", "fast", "slow", "fast", "slow", "fast"])
        self.assertEqual(values, {"slow": [1, 3, 5], "fast": [2, 4, 6]})

    def test_documents_of_the_program_are_keyed_by_the_content_of_files(self):
        file = self.folder / "input"
        keys = set()
        for text in ("one", "two"):
            file.write_text(text)
            context = self.context()
            self.assertEqual(context.json("plan", file, files=[file]), {"args": f"plan {file} --json"})
            keys.update(context.keys)
        self.assertEqual(len(keys), 2)

    def test_a_failing_program_is_named_with_its_error(self):
        self.program.write_text("#!/bin/sh\necho wrong >&2\nexit 2\n")
        with self.assertRaisesRegex(frame.StepFailed, "program plan: exit code 2: wrong"):
            self.context().run("plan")


class Welch(unittest.TestCase):
    def test_t_distribution_with_closed_forms(self):
        for t in (0.1, 1.0, 2.5, 30.0):
            self.assertAlmostEqual(welch.two_tailed(t, 1), 1 - 2 / math.pi * math.atan(t), places=12)
            self.assertAlmostEqual(welch.two_tailed(t, 2), 1 - t / math.sqrt(2 + t * t), places=12)
        self.assertAlmostEqual(welch.two_tailed(1.96, 1e7), math.erfc(1.96 / math.sqrt(2)), places=7)

    def test_quantiles_of_tables(self):
        for freedom, expected in ((1, 12.7062), (4, 2.77645), (9, 2.26216), (30, 2.04227)):
            self.assertAlmostEqual(welch.quantile(0.05, freedom), expected, delta=6e-5)
        self.assertAlmostEqual(welch.quantile(0.001, 10), 4.58689, delta=6e-5)

    @staticmethod
    def integrated(t, freedom):
        """Two-tailed probability by Simpson's rule over the density."""
        factor = math.gamma((freedom + 1) / 2) / math.sqrt(freedom * math.pi) / math.gamma(freedom / 2)
        steps, end = 2000, abs(t)
        width = end / steps
        density = [factor * (1 + (n * width) ** 2 / freedom) ** (-(freedom + 1) / 2) for n in range(steps + 1)]
        total = density[0] + density[-1] + 4 * sum(density[1::2]) + 2 * sum(density[2:-1:2])
        return 1 - 2 * total * width / 3

    def test_by_hand(self):
        # Means 3 and 6, variances 2.5 and 10: t = -3 / sqrt(0.5 + 2), freedom = 2.5² / (0.5² / 4 + 2² / 4).
        test = welch.welch([1, 2, 3, 4, 5], [2, 4, 6, 8, 10])
        self.assertAlmostEqual(test.t, -3 / math.sqrt(2.5), places=12)
        self.assertAlmostEqual(test.freedom, 6.25 / 1.0625, places=12)
        self.assertAlmostEqual(test.p, self.integrated(test.t, test.freedom), places=9)

    def test_unequal_variances_lower_the_freedom(self):
        calm, wild = [10.0, 10.1, 9.9, 10.0, 10.05], [12.0, 8.0, 15.0, 6.0, 14.0]
        self.assertLess(welch.welch(calm, wild).freedom, 4.1)
        self.assertEqual(welch.welch(calm, wild).p, welch.welch(wild, calm).p)

    def test_equal_values(self):
        self.assertEqual(welch.welch([1, 1], [1, 1]).p, 1.0)
        self.assertEqual(welch.welch([1, 1], [2, 2]).p, 0.0)
        with self.assertRaises(ValueError):
            welch.welch([1], [1, 2])

    def test_words(self):
        self.assertEqual(str(welch.welch([1, 1.01, 0.99], [9, 9.1, 8.9])), "P < .001")
        self.assertEqual(str(welch.welch([1, 2, 3, 4, 5], [2, 4, 6, 8, 10])), "P = .108")
        self.assertEqual(str(welch.mean([1.0, 2.0, 3.0])), "2.00 ± 2.48")
        self.assertEqual(str(welch.mean([12.34])), "12.3")

    def test_speedup_of_means_with_its_interval(self):
        found = welch.speedup([2.0, 2.2, 1.8], [1.0, 1.1, 0.9])
        self.assertAlmostEqual(found.mean, 2.0)
        self.assertGreater(found.half, 0.2)
        self.assertEqual(welch.speedup([4, 4], [2, 2]).half, 0.0)

    def test_rank_correlation(self):
        self.assertAlmostEqual(clustering_choice.rank_correlation([1, 2, 3], [10, 20, 30]), 1.0)
        self.assertAlmostEqual(clustering_choice.rank_correlation([1, 2, 3], [3, 2, 1]), -1.0)
        # Spearman with tied ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
        self.assertAlmostEqual(clustering_choice.rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]), 4.5 / math.sqrt(22.5))


class Charts(unittest.TestCase):
    def drawings(self):
        yield chart.bars("Title & more", {"a": {"x": 1.0, "y": None}, "b": {"x": -2.0, "y": 0.0}}, "s", {("a", "x"): 1.5})
        yield chart.bars("One", {"a": {"x": 0.0}}, "s", errors={("a", "x"): math.inf})
        yield chart.lines("Lines", {"a": [(1, 2.0), (10, 3.0)], "b": [(1, 0.5)]}, "x", "s", log_x=True, dashed=["b"])
        yield chart.lines("Many", {"a": [(x, x * 1.0) for x in range(40)]}, "x", "s")

    def test_drawings_are_xml_within_their_size(self):
        for drawing in self.drawings():
            root = ElementTree.fromstring(drawing)
            width, height = float(root.get("width")), float(root.get("height"))
            for element in root.iter():
                for name, limit in (("x", width), ("cx", width), ("x2", width), ("y", height), ("cy", height), ("y2", height)):
                    if element.get(name):
                        self.assertTrue(0 <= float(element.get(name)) <= limit, ElementTree.tostring(element))

    def test_heights_are_to_scale(self):
        root = ElementTree.fromstring(chart.bars("Two", {"a": {"x": 1.0}, "b": {"x": 3.0}}, "s"))
        heights = [float(e.get("height")) for e in root.iter() if e.get("class") == "f0"]
        self.assertAlmostEqual(heights[1] / heights[0], 3.0, delta=0.01)


class Documents(FrameTest):
    def figures(self):
        svg = chart.bars("b", {"a": {"x": 1.0}}, "s")
        result = Result(
            rows=[["gain | of it", "48 %", "47 %"]],
            why="of overheads.",
            tables=[
                Table(["a", "b"], [["1", "2"]], caption="More:"),
                Table(["claim", "ours", "result"], [["a", "1", "holds"], ["b", "2", "holds"], ["c", "3", "does not hold"]]),
            ],
            pictures=[Picture("gain", "A gain", svg)],
        )
        return [
            document.Outcome(Figure("000", "Fig. 4.1", "First", "executed, planned", print, same=["001 Fig. 12"]), result),
            document.Outcome(Figure("001", "Fig. 11", "Devices", "not reproduced", reason="It comes with devices.")),
            document.Outcome(Figure("002", "Fig. 20", "Later", "simulated", print), missing="Not run yet: a step."),
        ]

    def write(self, outcomes):
        path = self.folder / "docs" / "papers.md"
        document.write(path, outcomes, "quick", "pleach 0.1.0", False)
        return path.read_text()

    def test_matrix_and_sections(self):
        text = self.write(self.figures())
        for line in (
            "| [000 Fig. 4.1](#000-fig-41--001-fig-12-first) | First | yes |  | yes |  |",
            "| [001 Fig. 12](#000-fig-41--001-fig-12-first) | First | yes |  | yes |  |",
            "| [001 Fig. 11](#001-fig-11-devices) | Devices |  |  |  | yes |",
            "| [002 Fig. 20](#002-fig-20-later) | Later |  | missing |  |  |",
            "3 entries: 1 with values, 1 with a reason why they are not reproduced, 1 missing. Claims of texts, each checked on one or two",
            "workflows: 2 hold, 1 do not.",
            "### 000 Fig. 4.1 = 001 Fig. 12: First",
            "| gain \\| of it | 48 % | 47 % |",
            "Why they differ: of overheads.",
            "*Not reproduced.* It comes with devices.",
            "*Missing.* Not run yet: a step.",
            "![A gain](images/papers/000-fig-4-1-gain.svg)",
        ):
            self.assertIn(line, text.splitlines())
        self.assertTrue(text.startswith("# The papers, reproduced\n\n<!-- Written by benches/papers/run."), text[:100])
        self.assertEqual(text, self.write(self.figures()))

    def test_pictures_are_written_and_old_ones_removed(self):
        pictures = self.folder / "docs" / "images" / "papers"
        self.write(self.figures())
        self.assertEqual([path.name for path in pictures.iterdir()], ["000-fig-4-1-gain.svg"])
        self.write(self.figures()[1:])
        self.assertEqual(list(pictures.iterdir()), [])

    def test_a_row_without_a_cell_is_refused(self):
        with self.assertRaises(ValueError):
            document.table(["a", "b"], [["1"]])

    def test_figures_have_functions_or_reasons(self):
        for wrong in ({"kind": "argued", "run": print}, {"kind": "planned"}, {"kind": "planned", "run": print, "reason": "no"}):
            with self.assertRaises(ValueError):
                Figure("000", "Fig. 1", "Title", **wrong)

    def test_labels(self):
        figure = Figure("000", "Fig. 4.1", "First", "planned", print, same=["001 Fig. 12"])
        for wanted in ("000", "001", "fig. 12", "000 fig. 4.1", "001 Fig.  12"):
            self.assertTrue(figure.matches(wanted), wanted)
        for wanted in ("002", "fig. 4", "000 fig. 12"):
            self.assertFalse(figure.matches(wanted), wanted)


class Registered(unittest.TestCase):
    def test_every_published_figure_has_an_entry(self):
        names = {name for figure in frame.figures() for name in figure.names}
        missing = [
            f"{paper} {label}"
            for paper, labels in PUBLISHED.items()
            for label in labels
            # A figure may be cut into parts: Fig. 8a and Fig. 8b.
            if not any(re.fullmatch(re.escape(f"{paper} {label}") + "[a-z]?", name) for name in names)
        ]
        self.assertEqual(missing, [])

    def test_headings_are_unique(self):
        headings = [document.anchor(document.heading(figure)) for figure in frame.figures()]
        self.assertEqual(len(headings), len(set(headings)))

    def test_the_list_has_all(self):
        listed = subprocess.run([frame.HERE / "run", "--list"], capture_output=True, text=True, check=True, env=os.environ)
        self.assertEqual(len(listed.stdout.splitlines()), len(frame.figures()))

    def test_an_unknown_label_is_refused(self):
        done = subprocess.run([frame.HERE / "run", "--only", "005"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (2, "run: --only 005: no such figure; --list has them all\n"))

    def test_kept_values_of_a_step_have_their_inputs(self):
        with tempfile.TemporaryDirectory() as folder:
            context = Context(Path(sys.executable), Path(folder), log=lambda text: None)
            context.step("name", lambda: 1, tile="a")
            [path] = (Path(folder) / "steps").iterdir()
            self.assertEqual(json.loads(path.read_text()) | {"seconds": 0}, {"name": "name", "inputs": {"tile": "a"}, "seconds": 0, "value": 1})


if __name__ == "__main__":
    unittest.main()
