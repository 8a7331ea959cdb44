"""Samples and indices of models, against SALib where it is installed."""

import importlib.util
import os
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import numpy as np

import pleach_studies
from pleach_studies import Indices, Parameter, PleachError, Problem, analyze, evaluate, find_program, sample

try:
    find_program()
except FileNotFoundError as error:
    raise unittest.SkipTest(str(error)) from None

ISHIGAMI = {"num_vars": 3, "names": ["x1", "x2", "x3"], "bounds": [[-np.pi, np.pi]] * 3}
# The program of an installed wheel.
PACKED = Path(pleach_studies.__file__).with_name("_bin") / "pleach"

needs_salib = unittest.skipUnless(importlib.util.find_spec("SALib"), "SALib is not installed")
needs_pandas = unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not installed")


def ishigami(x: np.ndarray) -> float:
    return float(np.sin(x[0]) + 7 * np.sin(x[1]) ** 2 + 0.1 * x[2] ** 4 * np.sin(x[0]))


class Samples(unittest.TestCase):
    def test_shapes_and_bounds(self) -> None:
        for settings, rows in [
            ({"method": "moat", "trajectories": 5, "levels": 4}, 20),
            ({"method": "vbd", "samples": 16}, 80),
            ({"method": "vbd", "samples": 16, "second_order": True}, 128),
            ({"method": "fast", "samples": 65}, 195),
            ({"method": "pawn", "samples": 30, "sampler": "sobol"}, 30),
        ]:
            with self.subTest(settings):
                X = sample(ISHIGAMI, **settings)
                self.assertEqual(X.shape, (rows, 3))
                self.assertEqual(X.dtype, np.float64)
                self.assertTrue((np.abs(X) <= np.pi).all())
                self.assertTrue((np.ptp(X, axis=0) > np.pi).all())

    def test_the_seed_decides(self) -> None:
        one, same, other = (sample(ISHIGAMI, method="pawn", samples=12, seed=seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, same)
        self.assertFalse(np.array_equal(one, other))

    def test_groups_move_together(self) -> None:
        X = sample({**ISHIGAMI, "groups": ["a", "a", "b"]}, method="moat", trajectories=4, levels=4)
        self.assertEqual(X.shape, (12, 3))

    def test_steps_values_and_integers(self) -> None:
        problem = Problem(
            [
                Parameter("evaluation", range=(0, 10), step=2, type="integer"),
                Parameter("b, c", values=[0.5, 1.5, 7], default=1.5),
                Parameter("d", range=(1, 5), type="integer"),
                Parameter("e", distribution="log-normal", mean=0, std=0.5),
            ]
        )
        X = sample(problem, method="pawn", samples=60)
        self.assertEqual(X.shape, (60, 4))
        self.assertEqual(set(X[:, 0]), {0, 2, 4, 6, 8, 10})
        self.assertEqual(set(X[:, 1]), {0.5, 1.5, 7})
        self.assertEqual(set(X[:, 2]), {1, 2, 3, 4, 5})
        self.assertTrue((X[:, 3] > 0).all())
        indices = analyze(problem, X, X[:, 0], method="correlation")
        self.assertEqual(indices.names, problem.names)
        self.assertAlmostEqual(indices["pearson"][0], 1, 12)

    def test_refused_settings_have_message_and_code(self) -> None:
        with self.assertRaises(PleachError) as caught:
            sample(ISHIGAMI, method="pawn", samples=10, trajectories=3)
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("trajectories", str(caught.exception))
        self.assertNotIn("\n", caught.exception.message)
        self.assertFalse(caught.exception.message.startswith("error"))

    def test_a_missing_program_is_named(self) -> None:
        with mock.patch.dict(os.environ, {"PLEACH": "no-such-pleach"}):
            with self.assertRaisesRegex(FileNotFoundError, "PLEACH=no-such-pleach"):
                sample(ISHIGAMI, method="vbd", samples=8)
        with mock.patch.dict(os.environ, {"PLEACH": "", "PATH": ""}):
            if PACKED.is_file():  # in a wheel
                self.assertEqual(find_program(), str(PACKED))
            else:
                with self.assertRaisesRegex(FileNotFoundError, "not found in PATH"):
                    find_program()


class Analyses(unittest.TestCase):
    def agree(self, found: Indices, expected: dict, names: str) -> None:
        for name in names.split():
            with self.subTest(name):
                np.testing.assert_allclose(found[name], np.asarray(expected[name]), rtol=1e-9, atol=1e-9)

    @needs_salib
    def test_moat_agrees_with_salib(self) -> None:
        from SALib.analyze import morris

        for problem in (ISHIGAMI, {**ISHIGAMI, "groups": ["a", "a", "b"]}):
            found = evaluate(problem, ishigami, method="moat", trajectories=30, levels=4)
            expected = morris.analyze({**problem}, found.X, found.Y, num_levels=4)
            # SALib leaves mu and sigma of groups undefined.
            self.agree(found, expected, "mu_star" if "groups" in problem else "mu mu_star sigma")
            self.assertEqual(list(found.names), list(expected["names"]))

    @needs_salib
    def test_vbd_agrees_with_salib(self) -> None:
        from SALib.analyze import sobol

        for second_order in (False, True):
            found = evaluate(ISHIGAMI, ishigami, method="vbd", samples=128, second_order=second_order)
            # Seeded: its intervals of 100 random resamples vary by more than the tolerance.
            resampled = {"num_resamples": 1000, "seed": 3}
            expected = sobol.analyze(ISHIGAMI, found.Y, calc_second_order=second_order, **resampled)
            self.agree(found, expected, "S1 ST S2" if second_order else "S1 ST")
            np.testing.assert_allclose(found["ST_conf"], expected["ST_conf"], rtol=0.3)

    @needs_salib
    def test_a_sample_of_salib_is_analyzed(self) -> None:
        from SALib.analyze import morris, sobol
        from SALib.sample import morris as morris_sample
        from SALib.sample import sobol as sobol_sample

        X = sobol_sample.sample(ISHIGAMI, 64, calc_second_order=True, seed=3)
        Y = np.apply_along_axis(ishigami, 1, X)
        found = analyze(ISHIGAMI, X, Y, method="vbd", second_order=True)
        self.agree(found, sobol.analyze(ISHIGAMI, Y), "S1 ST S2")
        X = morris_sample.sample(ISHIGAMI, 20, num_levels=4, seed=3)
        Y = np.apply_along_axis(ishigami, 1, X)
        found = analyze(ISHIGAMI, X, Y, method="moat", levels=4)
        self.agree(found, morris.analyze(ISHIGAMI, X, Y, num_levels=4), "mu mu_star sigma")

    @needs_salib
    def test_other_methods_agree_with_salib(self) -> None:
        from SALib.analyze import fast, pawn, rbd_fast

        found = evaluate(ISHIGAMI, ishigami, method="fast", samples=129)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.agree(found, fast.analyze(ISHIGAMI, found.Y), "S1 ST")
        X = sample(ISHIGAMI, method="pawn", samples=300)
        Y = np.apply_along_axis(ishigami, 1, X)
        self.agree(analyze(ISHIGAMI, X, Y, method="rbd-fast"), rbd_fast.analyze(ISHIGAMI, X, Y), "S1")
        names = "minimum mean median maximum CV stdev"
        self.agree(analyze(ISHIGAMI, X, Y, method="pawn"), pawn.analyze(ISHIGAMI, X, Y, S=10), names)

    def test_every_method_has_arrays_of_one_number_per_name(self) -> None:
        X = sample(ISHIGAMI, method="delta", samples=100)
        Y = np.apply_along_axis(ishigami, 1, X)
        for method, names in [
            ("correlation", "pearson spearman pcc prcc pearson_conf pcc_low"),
            ("regression", "src srrc src_conf"),
            ("delta", "delta delta_plain S1 delta_conf"),
        ]:
            found = analyze(ISHIGAMI, X, Y, method=method, resamples=50)
            for name in names.split():
                self.assertEqual(found[name].shape, (3,), name)
                self.assertTrue(np.isfinite(found[name]).all(), name)
        self.assertIn("sobol", str(evaluate(ISHIGAMI, ishigami, method="vbd", samples=8, response="sobol")))

    def test_second_order_is_above_the_diagonal(self) -> None:
        found = evaluate(ISHIGAMI, ishigami, method="vbd", samples=64, second_order=True)
        self.assertEqual(found["S2"].shape, (3, 3))
        np.testing.assert_array_equal(np.isfinite(found["S2"]), np.triu(np.ones((3, 3), bool), 1))
        detected = analyze(ISHIGAMI, found.X, found.Y, method="vbd")
        np.testing.assert_array_equal(detected["S2"], found["S2"])
        plain = evaluate(ISHIGAMI, ishigami, method="vbd", samples=8)
        with self.assertRaises(PleachError):
            analyze(ISHIGAMI, plain.X, plain.Y, method="vbd", second_order=True)
        with self.assertRaisesRegex(KeyError, "mu_star: not in the indices of vbd; known are S1"):
            found["mu_star"]

    def test_failed_evaluations_are_dropped(self) -> None:
        X = sample(ISHIGAMI, method="moat", trajectories=6, levels=4)
        Y = np.apply_along_axis(ishigami, 1, X)
        expected = analyze(ISHIGAMI, X[4:], Y[4:], method="moat", levels=4)
        Y[1] = np.nan
        found = analyze(ISHIGAMI, X, Y, method="moat", levels=4)
        self.assertEqual(found.raw["trajectories_dropped"], 1)
        np.testing.assert_allclose(found["mu_star"], expected["mu_star"], rtol=1e-12)

    def test_executors_keep_the_order(self) -> None:
        plain = evaluate(ISHIGAMI, ishigami, method="vbd", samples=16)
        with ThreadPoolExecutor(2) as executor:
            threaded = evaluate(ISHIGAMI, ishigami, method="vbd", samples=16, map=executor.map)
        np.testing.assert_array_equal(threaded.Y, plain.Y)
        np.testing.assert_array_equal(threaded["ST_conf"], plain["ST_conf"])

    def test_wrong_shapes_are_refused(self) -> None:
        for X, Y, message in [
            (np.zeros((4, 2)), np.zeros(4), r"X has shape \(4, 2\); \(evaluations, 3\) is needed"),
            (np.zeros((4, 3)), np.zeros(5), r"Y has shape \(5,\); \(4,\) is needed"),
        ]:
            with self.assertRaisesRegex(ValueError, message):
                analyze(ISHIGAMI, X, Y, method="vbd")
        with self.assertRaisesRegex(ValueError, "the name is taken"):
            analyze(ISHIGAMI, np.zeros((4, 3)), np.zeros(4), method="vbd", response="x1")
        with self.assertRaises(PleachError) as caught:
            analyze(ISHIGAMI, np.full((8, 3), 9.0), np.zeros(8), method="pawn")
        self.assertEqual(caught.exception.code, 2)
        self.assertTrue(caught.exception.message.startswith("samples.csv"), caught.exception.message)

    @needs_pandas
    def test_indices_as_data_frame(self) -> None:
        frame = evaluate(ISHIGAMI, ishigami, method="vbd", samples=16, second_order=True).to_pandas()
        self.assertEqual(list(frame.index), ["x1", "x2", "x3"])
        self.assertIn("S1_conf", frame.columns)
        self.assertNotIn("S2", frame.columns)


if __name__ == "__main__":
    unittest.main()
