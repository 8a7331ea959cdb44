"""Loops: asking, telling, growth and continuation."""

import unittest

import numpy as np

from pleach_studies import Loop, Parameter, PleachError, Problem, evaluate, find_program

try:
    find_program()
except FileNotFoundError as error:
    raise unittest.SkipTest(str(error)) from None

PROBLEM = {"names": ["a", "b", "c"], "bounds": [[0, 1]] * 3}


def model(x: np.ndarray) -> float:
    return float(4 * x[0] + x[1] ** 2 + x[0] * x[2])


def answer(loop: Loop) -> None:
    loop.tell([model(x) for x in loop.ask()])


class Loops(unittest.TestCase):
    def test_one_round_has_the_indices_of_evaluate(self) -> None:
        for settings in ({"method": "vbd", "samples": 32}, {"method": "moat", "trajectories": 6, "levels": 8}):
            loop = Loop(PROBLEM, **settings, seed=3)
            while not loop.done:
                loop.tell([model(x) for x in loop.ask(7)])
            expected = evaluate(PROBLEM, model, **settings, seed=3)
            np.testing.assert_array_equal(loop.X, expected.X)
            np.testing.assert_array_equal(loop.Y, expected.Y)
            for name, numbers in expected.items():
                np.testing.assert_array_equal(loop.indices()[name], numbers)
            self.assertFalse(loop.converged)

    def test_the_sample_grows_until_it_is_precise(self) -> None:
        for settings in (
            {"method": "vbd", "samples": 16, "ci_width": 0.25},
            {"method": "vbd", "samples": 16, "ci_width": 0.25, "sampler": "halton"},
            {"method": "moat", "trajectories": 4, "levels": 8, "ci_width": 0.7},
            {"method": "correlation", "samples": 20, "ci_width": 0.5},
        ):
            with self.subTest(settings):
                loop = Loop(PROBLEM, max_evaluations=4000, **settings)
                sizes = []
                while not loop.done:
                    before = loop.X
                    answer(loop)
                    sizes.append(len(before))
                    np.testing.assert_array_equal(loop.X[: len(before)], before)
                self.assertGreater(len(sizes), 1)
                self.assertEqual(sizes, [sizes[0] * number for number in range(1, len(sizes) + 1)])
                self.assertTrue(loop.converged)
                self.assertEqual(len(loop.widths), len(sizes))
                self.assertLessEqual(loop.widths[-1], settings["ci_width"])
                self.assertTrue(all(width > settings["ci_width"] for width in loop.widths[:-1]))

    def test_growth_stops_before_the_maximum(self) -> None:
        loop = Loop(PROBLEM, method="vbd", samples=8, ci_width=1e-6, max_evaluations=100)
        while not loop.done:
            answer(loop)
        self.assertEqual((len(loop.X), loop.converged), (80, False))
        self.assertEqual(repr(loop), "Loop(vbd, round 2, 80 evaluations, done)")
        with self.assertRaisesRegex(ValueError, "max_evaluations 39 is not allowed; 40 or more"):
            Loop(PROBLEM, method="vbd", samples=8, ci_width=0.1, max_evaluations=39)

    def test_responses_are_told_in_any_order(self) -> None:
        loop = Loop(PROBLEM, method="vbd", samples=8)
        first, second = loop.ask(10), loop.ask()
        self.assertEqual((first.shape, second.shape, loop.ask().shape), ((10, 3), (30, 3), (0, 3)))
        order = np.random.default_rng(1).permutation(30)
        loop.tell([model(x) for x in second[order]], second[order])
        np.testing.assert_array_equal(loop.ask_again(), first)
        self.assertFalse(loop.done)
        self.assertTrue(np.isnan(loop.Y[:10]).all())
        loop.tell(model(first[0]))
        loop.tell([model(x) for x in first[1:]])
        self.assertTrue(loop.done)
        np.testing.assert_array_equal(loop.Y, [model(x) for x in loop.X])

    def test_equal_sets_have_a_response_each(self) -> None:
        problem = Problem([Parameter("a", values=[0, 1]), Parameter("b", values=[0, 1])])
        loop = Loop(problem, method="pawn", samples=12, sampler="mc")
        X = loop.ask()
        self.assertLess(len(np.unique(X, axis=0)), 12)
        loop.tell(X[:, 0], X)
        self.assertTrue(loop.done)
        np.testing.assert_array_equal(loop.Y, X[:, 0])

    def test_a_loop_continues_from_stored_responses(self) -> None:
        settings = {"method": "vbd", "samples": 8, "ci_width": 1e-6, "max_evaluations": 200}
        loop = Loop(PROBLEM, **settings)
        for _ in range(3):
            answer(loop)
        X, Y = loop.X, loop.Y
        known = np.isfinite(Y)
        self.assertEqual((len(X), known.sum()), (160, 120))
        again = Loop(PROBLEM, **settings)
        again.tell(Y[known], X[known])
        np.testing.assert_array_equal(again.ask(), X[~known])
        np.testing.assert_array_equal(again.Y, Y)
        self.assertEqual(again.widths, loop.widths)

    def test_failed_evaluations_are_dropped(self) -> None:
        loop = Loop(PROBLEM, method="moat", trajectories=5, levels=8)
        Y = np.array([model(x) for x in loop.ask()])
        Y[1] = np.nan
        loop.tell(Y)
        self.assertTrue(loop.done)
        self.assertEqual(loop.indices().raw["trajectories_dropped"], 1)
        failed = Loop(PROBLEM, method="vbd", samples=8, ci_width=0.1, max_evaluations=80)
        failed.tell(np.full(40, np.nan), failed.ask())
        self.assertEqual((len(failed.X), np.isnan(failed.widths).tolist()), (80, [True]))
        with self.assertRaises(PleachError):
            failed.indices()

    def test_wrong_answers_change_nothing(self) -> None:
        loop = Loop(PROBLEM, method="vbd", samples=8, ci_width=0.1, max_evaluations=80)
        X = loop.ask(5)
        for Y, rows, message in [
            (np.zeros(6), None, "Y has 6 responses; 5 parameter sets wait"),
            (np.zeros((2, 2)), None, r"Y has shape \(2, 2\)"),
            (np.zeros(5), X[:, :2], r"X has shape \(5, 2\); \(5, 3\) is needed"),
            (np.zeros(5), np.vstack([X[:4], X[4:] + 2]), r"X\[4\] .*: no parameter set of this sample"),
            (np.zeros(6), np.vstack([X, X[:1]]), r"X\[5\] .*: no parameter set"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                loop.tell(Y, rows)
            self.assertTrue(np.isnan(loop.Y).all())
            np.testing.assert_array_equal(loop.ask_again(), X)

    def test_wrong_settings_are_refused(self) -> None:
        for settings, message in [
            ({"method": "vbd"}, "samples: missing"),
            ({"method": "moat", "samples": 3}, "samples is not allowed with method moat"),
            ({"samples": 8, "trajectories": 3}, "trajectories is not allowed with method vbd"),
            ({"samples": 8, "ci_width": 0.1}, "max_evaluations: missing"),
            ({"samples": 8, "max_evaluations": 99}, "ci_width: missing"),
            ({"samples": 8, "ci_width": 0.0, "max_evaluations": 99}, "ci_width 0.0 is not allowed"),
            ({"method": "pawn", "samples": 8, "ci_width": 1, "max_evaluations": 9}, "methods that grow are moat"),
            ({"samples": 8, "color": 1}, "'color' is not a setting of a loop"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                Loop(PROBLEM, **settings)
        loop = Loop(PROBLEM, method="vbd", samples=8, sampler="lhs", ci_width=1e-6, max_evaluations=99)
        with self.assertRaisesRegex(ValueError, "sampler lhs: a larger sample does not keep its rows"):
            answer(loop)
        with self.assertRaisesRegex(ValueError, "count 0"):
            loop.ask(0)


if __name__ == "__main__":
    unittest.main()
