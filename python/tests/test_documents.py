"""Runs the Python code of the README and of the chapter, in the order of the page."""

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from pleach_studies import find_program

try:
    PLEACH = find_program()
except FileNotFoundError as error:
    raise unittest.SkipTest(str(error)) from None

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT.parent / "docs/python-client.md"]


class Pages(unittest.TestCase):
    def test_code_runs(self) -> None:
        for name in ("SALib", "pandas"):
            if not importlib.util.find_spec(name):
                self.skipTest(f"{name} is not installed")
        for page in PAGES:
            if not page.is_file():
                continue
            with self.subTest(page.name), tempfile.TemporaryDirectory() as folder:
                tissue = ["tissue", "--out", f"{folder}/tiles", "--size", "64", "--count", "2"]
                subprocess.run([PLEACH, *tissue], check=True, capture_output=True)
                blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
                self.assertTrue(blocks)
                names: dict[str, object] = {"__name__": "__main__"}
                before = os.getcwd()
                os.chdir(folder)
                try:
                    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                        for block in blocks:
                            exec(compile(block, page.name, "exec"), names)
                finally:
                    os.chdir(before)


if __name__ == "__main__":
    unittest.main()
