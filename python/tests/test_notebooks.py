"""Executes the notebooks of ``examples/notebooks`` and looks at their outputs."""

import importlib.util
import os
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from pleach_studies import find_program

try:
    find_program()
except FileNotFoundError as error:
    raise unittest.SkipTest(str(error)) from None
for name in ("nbclient", "ipykernel", "matplotlib", "pandas"):
    if not importlib.util.find_spec(name):
        raise unittest.SkipTest(f"{name} is not installed")

FOLDER = Path(__file__).resolve().parents[2] / "examples/notebooks"


@unittest.skipUnless(FOLDER.is_dir(), "the notebooks are not part of the source distribution")
class Notebooks(unittest.TestCase):
    def execute(self, name: str, cells: int) -> tuple[str, list[str]]:
        """Executes a notebook. Returns its texts and the types of its other outputs."""
        import nbclient
        import nbformat

        notebook = nbformat.read(FOLDER / name, 4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        for cell in code:
            self.assertEqual((cell.outputs, cell.execution_count), ([], None), "stored without outputs")
        source = str(Path(__file__).resolve().parents[1] / "src")
        with tempfile.TemporaryDirectory() as folder:
            # Settings of a user's own IPython and matplotlib play no part.
            own = {"IPYTHONDIR": f"{folder}/ipython", "MPLCONFIGDIR": f"{folder}/matplotlib"}
            with mock.patch.dict(os.environ, {"PYTHONPATH": source, **own}):
                nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
        executed = [cell for cell in code if cell.execution_count]
        self.assertEqual([cell.execution_count for cell in executed], list(range(1, cells + 1)))
        self.assertEqual(len(code), cells)
        outputs = [output for cell in code for output in cell.outputs]
        text = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
        errors = [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
        self.assertEqual(errors, [])
        return text, [kind for output in outputs for kind in output.get("data", {})] + self.pages(outputs)

    def pages(self, outputs: list) -> list[str]:
        found = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
        return [page for page in found if page.startswith("<iframe")]

    def test_first_study(self) -> None:
        text, outputs = self.execute("first-study.ipynb", 8)
        self.assertIn("G1            5 to   80, default   80", text)
        self.assertIn("96 evaluations", text)
        self.assertRegex(text, r"\d{3,} tasks executed, 0 runs failed")
        self.assertEqual(outputs.count("image/png"), 2)
        # Progress of the run, two tables and the report.
        self.assertEqual(outputs.count("text/html"), 4)
        self.assertIn('sandbox=""', outputs[-1])
        self.assertGreater(len(outputs[-1]), 100_000)

    def test_own_model(self) -> None:
        text, outputs = self.execute("own-model.ipynb", 7)
        widths = [float(width) for width in re.findall(r"the widest interval is (\d\.\d+)", text)]
        self.assertGreater(len(widths), 1)
        self.assertLessEqual(widths[-1], 0.25)
        self.assertIn("converged: True", text)
        for name in ("S1", "ST"):
            [difference] = re.findall(rf"{name} differs from the known index by at most (\S+)", text)
            self.assertLess(float(difference), 0.1)
        self.assertIn("340 parameter sets are left", text)
        self.assertIn("Loop(moat, round 1, 40 evaluations, done)", text)
        self.assertEqual(outputs.count("image/png"), 1)


if __name__ == "__main__":
    unittest.main()
