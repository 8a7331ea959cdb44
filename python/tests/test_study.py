"""Studies of the built-in workflow on generated tissue."""

import importlib.util
import io
import json
import os
import subprocess
import tempfile
import unittest
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np

from pleach_studies import (
    Indices,
    Parameter,
    PleachError,
    PleachWarning,
    Problem,
    Results,
    Study,
    find_program,
    sample,
)

try:
    PLEACH = find_program()
except FileNotFoundError as error:
    raise unittest.SkipTest(str(error)) from None

needs_pandas = unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not installed")
needs_frames = unittest.skipUnless(
    importlib.util.find_spec("polars") and importlib.util.find_spec("xarray"), "polars or xarray is not installed"
)
needs_salib = unittest.skipUnless(importlib.util.find_spec("SALib"), "SALib is not installed")

MOAT = {"kind": "moat", "trajectories": 2}


class Studies(unittest.TestCase):
    folder: Path
    study: Study
    results: Results

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        tissue = ["tissue", "--out", cls.folder / "tiles", "--size", "64", "--count", "2"]
        subprocess.run([PLEACH, *tissue], check=True, capture_output=True)
        cls.study = cls.of(method=MOAT, response=["dice", "nuclei"], name="quick")
        cls.results = cls.study.run(cls.folder / "results", workers=1, quiet=True)

    @classmethod
    def of(cls, **fields: object) -> Study:
        usual = {"workflow": "nuclei", "tiles": cls.folder / "tiles/*.png", "method": MOAT, "seed": 500}
        return Study(**{**usual, **fields})

    def test_all_keys_are_planned(self) -> None:
        study = self.of(
            method={"kind": "vbd", "samples": 2, "second_order": False},
            response=["dice", "nuclei"],
            parameters=[Parameter("G1", range=(5, 80), step=5, default=60), Parameter("FillHoles", fixed=4)],
            reference=self.folder / "tiles",
            both_empty="leave-out",
            input={"normalize": False},
        )
        plan = study.plan("--strategy=all")
        self.assertEqual(plan["plans"][0]["evaluations"], 2 * (14 + 2))
        self.assertGreater(len(plan["plans"]), 1)
        self.assertIn("normalize = false\n", study.to_toml())

    def test_files_have_relative_paths(self) -> None:
        path = self.study.write(self.folder / "study.toml")
        self.assertIn('tiles = ["tiles/*.png"]\n', path.read_text())
        done = subprocess.run([PLEACH, "plan", path, "--json"], check=True, capture_output=True)
        self.assertEqual(json.loads(done.stdout)["plans"][0]["evaluations"], 32)
        sets = self.of(method={"kind": "table", "file": self.folder / "results/samples.csv"})
        self.assertIn(f'tiles = ["{self.folder}/tiles/*.png"]\n', sets.to_toml())
        self.assertIn('file = "results/samples.csv"\n', sets.to_toml(self.folder))
        self.assertEqual(sets.plan()["plans"][0]["evaluations"], 32)
        own = Study(workflow="own/workflow.json", method="moat", slides=["a.svs"], name="own")
        self.assertIn('workflow = "own/workflow.json"\nseed = 0\n\n[input]\nslides = ["a.svs"]\n', own.to_toml("."))

    def test_results(self) -> None:
        results = self.results
        self.assertEqual(results.run["evaluations"], 32)
        self.assertEqual(results.samples.shape, (32,))
        self.assertEqual(results.responses.shape, (64,))
        self.assertEqual(results.responses.dtype.names[:3], ("evaluation", "tile", "dice"))
        self.assertEqual(len(results.failed), 0)
        self.assertEqual(results.failed.dtype.names[:5], ("evaluation", "tile", "stage", "task", "cause"))
        self.assertEqual(results.phases, ())
        self.assertIn("object-dice", results.metrics)
        self.assertEqual(list(results.indices), ["dice", "nuclei"])
        self.assertIsInstance(results.indices["dice"], Indices)
        self.assertEqual(results.names, results.indices["nuclei"].names)
        self.assertEqual(results.indices["nuclei"]["mu_star"].shape, (15,))
        self.assertEqual(results.X.shape, (32, 15))
        np.testing.assert_array_equal(results.X[:, results.names.index("G1")], results.samples["G1"])
        self.assertTrue(results.report.is_file())
        self.assertEqual(repr(results), f"Results('{self.folder}/results')")

    def test_responses_are_combined_over_tiles(self) -> None:
        rows = self.results.responses
        per_tile = [rows["nuclei"][rows["tile"] == tile] for tile in np.unique(rows["tile"])]
        np.testing.assert_array_equal(self.results.Y("nuclei"), per_tile[0] + per_tile[1])
        np.testing.assert_allclose(self.results.Y("nuclei", "mean"), (per_tile[0] + per_tile[1]) / 2)
        self.assertEqual(self.results.Y("dice").shape, (32,))
        for metric in ("dice", "nuclei"):
            [extreme] = [entry for entry in self.results.run["extremes"] if entry["response"] == metric]
            for entry in extreme["evaluations"]:
                if entry["evaluation"]:
                    self.assertAlmostEqual(self.results.Y(metric)[entry["evaluation"] - 1], entry["value"], 12)
        with self.assertRaisesRegex(KeyError, "area: no metric of these results; known are dice"):
            self.results.Y("area")

    def test_runs_with_empty_masks_left_out_need_a_rule(self) -> None:
        results = self.of(both_empty="leave-out").run(self.folder / "left-out", workers=1, quiet=True)
        if results.run["both_empty"]:
            with self.assertRaisesRegex(ValueError, "dice: the study leaves out"):
                results.Y("dice")
        self.assertEqual(results.Y("dice", "mean").shape, (32,))

    def test_notebooks_show_the_report_in_a_sandbox(self) -> None:
        page = self.results._repr_html_()
        self.assertTrue(page.startswith('<iframe sandbox="" srcdoc="&lt;!'), page[:60])
        self.assertEqual(page.count("<"), 2)

    def test_complete_results_are_kept_or_replaced(self) -> None:
        with self.assertRaises(PleachError) as caught:
            self.study.run(self.folder / "results", quiet=True)
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("holds complete results", caught.exception.message)
        resumed = self.study.run(self.folder / "results", resume=True, quiet=True)
        np.testing.assert_array_equal(resumed.responses, self.results.responses)

    def test_standard_error_is_passed_through_unless_quiet(self) -> None:
        # A tile that cannot be read gives a warning, failed runs and exit status 3.
        tiles = self.folder / "partly"
        tiles.mkdir()
        os.link(self.folder / "tiles/tissue_01.png", tiles / "a.png")
        (tiles / "b.png").write_bytes((tiles / "a.png").read_bytes()[:2000])
        for quiet in (False, True):
            shown = io.StringIO()
            with redirect_stderr(shown), self.assertWarnsRegex(PleachWarning, "32 runs failed"):
                study = self.of(tiles=tiles / "*.png")
                results = study.run(self.folder / "partly-results", workers=1, overwrite=quiet, quiet=quiet)
            self.assertEqual("b.png" in shown.getvalue(), not quiet, shown.getvalue())
            self.assertEqual(len(results.failed), 32)
            self.assertEqual(results.failed["tile"][0], "b")
            self.assertTrue(results.failed["cause"][0])
            self.assertTrue(np.isfinite(results.Y("dice")).all())

    def test_results_without_a_response(self) -> None:
        (self.folder / "broken.png").write_bytes((self.folder / "tiles/tissue_01.png").read_bytes()[:2000])
        with self.assertWarnsRegex(PleachWarning, "32 runs failed"):
            results = self.of(tiles=self.folder / "broken.png").run(self.folder / "none", workers=1, quiet=True)
        self.assertEqual((len(results.responses), len(results.failed)), (0, 32))
        np.testing.assert_array_equal(results.Y("dice"), np.full(32, np.nan))

    def test_wrong_studies_have_message_and_code(self) -> None:
        for fields, message in [
            ({"response": "beauty"}, "beauty"),
            ({"method": {"kind": "moat", "samples": 3}}, "samples"),
            ({"parameters": [Parameter("G9", fixed=1)]}, "G9"),
            ({"tiles": self.folder / "none/*.png"}, "none"),
        ]:
            with self.subTest(message):
                for call in (lambda study: study.plan(), lambda study: study.run(self.folder / "bad", quiet=True)):
                    with self.assertRaises(PleachError) as caught:
                        call(self.of(**fields))
                    self.assertEqual(caught.exception.code, 2)
                    self.assertTrue(caught.exception.message.startswith("study.toml: "), caught.exception.message)
                    self.assertIn(message, caught.exception.message)
        self.assertFalse((self.folder / "bad").exists())
        with self.assertRaisesRegex(ValueError, "one of tiles and slides"):
            Study(workflow="nuclei", method="moat")
        with self.assertRaisesRegex(TypeError, "type object cannot be written"):
            self.of(input={"normalize": object()}).to_toml()
        with self.assertRaisesRegex(FileNotFoundError, "no run.json"):
            Results(self.folder / "tiles")

    def test_phases(self) -> None:
        phases = [{**MOAT, "survivors": {"most_influential": 2}}, {"kind": "vbd", "samples": 4}]
        results = self.of(method=phases).run(self.folder / "phases", workers=1, quiet=True)
        self.assertEqual(len(results.phases), 2)
        first, second = results.phases
        self.assertEqual((first.X.shape, second.X.shape), ((32, 15), (16, 2)))
        self.assertEqual(second.indices["dice"]["ST"].shape, (2,))
        self.assertTrue(results.report.is_file())
        with self.assertRaisesRegex(ValueError, "a study in phases; indices.json is in each of `phases`"):
            results.indices  # noqa: B018

    @needs_salib
    def test_salib_takes_the_results(self) -> None:
        from SALib.analyze import sobol

        study = self.of(method={"kind": "vbd", "samples": 8}, response=["nuclei", "dice"])
        results = study.run(self.folder / "vbd", workers=1, quiet=True)
        self.assertTrue(np.ptp(results.Y("nuclei")) > 0)
        found = sobol.analyze(results.problem(), results.Y("nuclei"), calc_second_order=False)
        for name in ("S1", "ST"):
            np.testing.assert_allclose(results.indices["nuclei"][name], found[name], rtol=1e-9, atol=1e-9)

    @needs_pandas
    def test_data_frames(self) -> None:
        import pandas

        frame = self.results.to_pandas()
        self.assertEqual(len(frame), 64)
        self.assertEqual(list(frame.columns[:3]), ["evaluation", "tile", "B"])
        expected = frame.groupby("evaluation")["dice"].mean().to_numpy()
        np.testing.assert_allclose(self.results.Y("dice"), expected)
        self.assertEqual(len(pandas.DataFrame(self.results.responses)), 64)
        self.assertEqual(len(self.results.indices["dice"].to_pandas()), 15)

    @needs_pandas
    @needs_frames
    def test_polars_and_xarray_have_the_same_numbers(self) -> None:
        frame, other, grid = self.results.to_pandas(), self.results.to_polars(), self.results.to_xarray()
        self.assertEqual(list(frame.columns), other.columns)
        for name in frame.columns:
            np.testing.assert_array_equal(frame[name].to_numpy(), other[name].to_numpy(), name)
        self.assertEqual(dict(grid.sizes), {"evaluation": 32, "tile": 2})
        np.testing.assert_array_equal(grid["nuclei"].sum("tile"), self.results.Y("nuclei"))
        np.testing.assert_array_equal(grid["G1"], self.results.samples["G1"])
        indices = self.results.indices["dice"]
        self.assertEqual(indices.to_polars()["parameter"].to_list(), list(indices.names))
        np.testing.assert_array_equal(indices.to_polars()["mu_star"].to_numpy(), indices["mu_star"])
        np.testing.assert_array_equal(indices.to_xarray()["mu_star"].sel(parameter="G1"), indices["mu_star"][6])
        self.assertEqual(indices.to_xarray().attrs, {"method": "moat", "response": "dice"})

    def test_the_problem_of_a_workflow(self) -> None:
        problem = Problem.of("nuclei")
        self.assertEqual(problem.names, self.results.names)
        g1 = next(parameter for parameter in problem if parameter.name == "G1")
        self.assertEqual((g1.default, g1.type, g1.values), (80, "integer", tuple(range(5, 81, 5))))
        X = sample(problem, method="moat", trajectories=2, levels=20, seed=500)
        self.assertEqual(X.shape, (32, 15))
        self.assertEqual(problem.to_salib()["bounds"][6], [5, 80])
        same = self.of(parameters=problem)
        self.assertEqual(same.plan()["plans"][0]["evaluations"], 32)
        file = self.folder / "own.json"
        with self.assertRaisesRegex(PleachError, "own.json"):
            Problem.of(file)


if __name__ == "__main__":
    unittest.main()
