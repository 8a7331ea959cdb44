"""Types, checked by mypy: of the package, and of a program that uses it."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]

PROGRAM = """\
import numpy as np
import pleach_studies as ps

problem = ps.Problem.of("nuclei")
loop = ps.Loop(problem, method="vbd", samples=8)
loop.tell([float(x[0]) for x in loop.ask()])
reveal_type(loop.indices()["S1"])
study = ps.Study(workflow="nuclei", tiles="*.png", method="moat", parameters=problem)
submission = study.submit("https://localhost:1", ca="ca.pem", token="secret")
reveal_type(submission.results())
ps.sample(problem, method="sobol")
study.run(worker=2)
"""


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
class Types(unittest.TestCase):
    def test_package_and_program(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "program.py")
            program.write_text(PROGRAM)
            command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={folder}/cache", "src", program]
            environment = {**os.environ, "MYPYPATH": "src"}
            done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, env=environment)
        found = [line.partition("program.py:")[2] for line in done.stdout.splitlines() if "program.py:" in line]
        expected = [
            ("7: note: Revealed type is", "float64"),
            ("10: note: Revealed type is", "Results"),
            ("11: error: Argument", "[arg-type]"),
            ("12: error: Unexpected keyword argument", '"worker"'),
        ]
        self.assertEqual(len(found), len(expected), done.stdout + done.stderr)
        for line, (start, part) in zip(found, expected, strict=True):
            self.assertTrue(line.startswith(start) and part in line, line)
        self.assertIn("Found 2 errors in 1 file ", done.stdout)
        self.assertTrue((PACKAGE / "src/pleach_studies/py.typed").is_file())


if __name__ == "__main__":
    unittest.main()
