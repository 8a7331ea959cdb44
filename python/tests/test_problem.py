"""Problems, from and to SALib. These tests do not run pleach."""

import unittest

import numpy as np

from pleach_studies import Parameter, Problem

FULL = {
    "num_vars": 7,
    "names": ["x1", "x 2", "x3", "x4", "x5", "x6", "x7"],
    "bounds": [[-3, 3], [1, 10.5], [0, 1], [-1, 0.3], [0, 2, 1, 0.5], [1, 3, 0.3], [4, 0.25]],
    "groups": ["a", "a", "b", "b", "c", "c", "c"],
    "dists": ["unif", "logunif", "norm", "lognorm", "truncnorm", "triang", "triang"],
}


class Problems(unittest.TestCase):
    def test_salib_problem_round_trips(self) -> None:
        problem = Problem.from_salib(FULL)
        self.assertEqual(problem.to_salib(), FULL)
        self.assertEqual(problem.names, tuple(FULL["names"]))
        self.assertEqual(problem.parameters[1].distribution, "log-uniform")
        self.assertEqual([parameter.group for parameter in problem], FULL["groups"])
        self.assertEqual(problem.parameters[6].range, (0, 4))
        self.assertEqual(problem.parameters[6].mode, 1.0)
        again = Problem(problem.parameters)
        self.assertEqual(again, problem)
        self.assertEqual(Problem.from_salib(again.to_salib()).parameters[:5], problem.parameters[:5])
        plain = {"names": ["a"], "bounds": np.array([[0.0, 1.0]]), "groups": None}
        self.assertEqual(Problem.from_salib(plain).to_salib(), {"num_vars": 1, "names": ["a"], "bounds": [[0, 1]]})

    def test_returned_dicts_are_new(self) -> None:
        problem = Problem.from_salib(FULL)
        problem.to_salib()["bounds"][0][0] = 99
        self.assertEqual(problem.to_salib(), FULL)

    def test_parameters_beyond_salib_keep_their_bounds(self) -> None:
        parameters = [
            Parameter("a", range=(0, 10), step=2, type="integer"),
            Parameter("b", values=[0.5, 7, 1.5], default=1.5),
            Parameter("c", distribution="triangular", range=(0, 4), mode=1, group="g"),
        ]
        expected = {
            "num_vars": 3,
            "names": ["a", "b", "c"],
            "bounds": [[0, 10], [0.5, 7], [0, 4, 0.25]],
            "groups": ["a", "b", "g"],
            "dists": ["unif", "unif", "triang"],
        }
        self.assertEqual(Problem(parameters).to_salib(), expected)

    def test_wrong_dicts_are_refused_with_their_place(self) -> None:
        good = {"names": ["x", "y"], "bounds": [[0, 1], [0, 1]]}
        cases = [
            ({"name": []}, "'name' is not a key of a problem"),
            ({}, "names: missing"),
            ({"names": []}, "names: empty"),
            ({"names": "xy"}, "names: 'xy' is not a list"),
            ({"names": ["x"]}, "bounds: missing"),
            ({**good, "bounds": [[0, 1]]}, "bounds has 1 entries; 2 are needed"),
            ({**good, "num_vars": 3}, "num_vars is 3; 2 is needed"),
            ({**good, "bounds": [[0, 1], 5]}, r"bounds\[1\]: 5 is not a list"),
            ({**good, "bounds": [[0, 1], [0, "1"]]}, r"bounds\[1\]: '1' is not a finite number"),
            ({**good, "bounds": [[0, 1], [0, np.inf]]}, r"bounds\[1\]: inf is not a finite number"),
            ({**good, "bounds": [[0, 1], [2, 1]]}, r"bounds\[1\]: parameter y: range \[2, 1\]"),
            ({**good, "bounds": [[0, 1], [0, 1, 2]]}, r"bounds\[1\]: 3 numbers for unif; 2 are needed"),
            ({**good, "dists": ["unif", "weibull"]}, r"dists\[1\]: 'weibull' is not allowed"),
            ({**good, "dists": ["unif"]}, "dists has 1 entries"),
            ({**good, "groups": ["a"]}, "groups has 1 entries"),
            ({**good, "bounds": [[0, 1], [0, 1, 2]], "dists": ["unif", "triang"]}, r"bounds\[1\]: the peak 2"),
            ({**good, "names": ["x", "x"]}, "parameter x: the name occurs twice"),
        ]
        for problem, message in cases:
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                Problem.from_salib(problem)

    def test_wrong_parameters_are_refused_with_their_name(self) -> None:
        cases = [
            ({"range": (1, 0)}, "parameter p: range"),
            ({"values": [1]}, "parameter p: values has fewer"),
            ({"range": (0, 1), "fixed": 1}, "not range and fixed"),
            ({"values": [1, 2], "step": 1}, "step needs range"),
            ({"distribution": "normal", "mean": 1}, "distribution normal needs std"),
            ({"distribution": "normal", "mean": 1, "std": 1, "range": (0, 1)}, "range is not allowed"),
            ({"distribution": "weibull"}, "'weibull' is not allowed"),
            ({"range": (0, 1), "mode": 1}, "mode is not allowed"),
        ]
        for fields, message in cases:
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                Parameter("p", **fields)
        with self.assertRaisesRegex(ValueError, "one line of text"):
            Parameter("a\nb", range=(0, 1))
        with self.assertRaisesRegex(ValueError, "parameter p: fixed"):
            Problem([Parameter("p", fixed=1)])
        with self.assertRaisesRegex(ValueError, "range, values or distribution is needed"):
            Problem([Parameter("p")])
        with self.assertRaisesRegex(ValueError, "at least one parameter"):
            Problem([])

    def test_sections_quote_names_and_keep_numbers(self) -> None:
        parameter = Parameter('x "2"', range=(0.1, np.float64(1 / 3)), step=1e-7, group="é")
        lines = ['[parameters."x \\"2\\""]', "range = [0.1, 0.3333333333333333]", "step = 1e-07", 'group = "é"', ""]
        self.assertEqual(parameter.to_toml(), "\n".join(lines))


if __name__ == "__main__":
    unittest.main()
