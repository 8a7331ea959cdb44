"""Progress in terminals and notebooks, with shell scripts in place of pleach."""

import contextlib
import io
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

from pleach_studies import PleachError, Study

#: Two frames of the bar, a warning between them, and the end of the bar.
SCRIPT = r"""#!/bin/sh
test -t 2 || { echo "no terminal" >&2; exit 1; }
case " $* " in *" --json "*) exit 70 ;; esac
bar() { printf '===>                  %s %%  %s/64 evaluations\r\n%s tasks run' $1 $2 $3 >&2; }
bar 20 12 40; sleep 0.3
printf '\r\033[1A\033[J' >&2; echo "tile b.png: not readable" >&2
bar 90 60 400; sleep 0.3
printf '\r\033[1A\033[J' >&2
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Handle:
    """Stands for a notebook's output."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, content: dict[str, str], raw: bool, display_id: bool) -> "Handle":
        assert raw and display_id
        self.shown.append(content)
        return self

    def update(self, content: dict[str, str], raw: bool) -> None:
        assert raw
        self.shown.append(content)


class Progress(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.study = Study(workflow="nuclei", tiles="*.png", method="moat")

    def run_study(self, script: str, code: int) -> str:
        """Runs a script as pleach, which ends with an exit status of an error. Returns the message."""
        program = self.folder / "pleach"
        program.write_text(f"{script}\necho 'error: out: full' >&2; exit {code}\n")
        program.chmod(0o755)
        with mock.patch.dict(os.environ, {"PLEACH": str(program)}), self.assertRaises(PleachError) as caught:
            self.study.run(self.folder / "out")
        return caught.exception.message

    def test_a_terminal_gets_the_bar_as_it_is(self) -> None:
        with contextlib.redirect_stderr(Terminal()) as shown:
            self.assertEqual(self.run_study(SCRIPT, 6), "out: full")
        clear = "\r\x1b[1A\x1b[J"
        first = "===>                  20 %  12/64 evaluations\r\n40 tasks run"
        second = "===>                  90 %  60/64 evaluations\r\n400 tasks run"
        expected = f"{first}{clear}tile b.png: not readable\n{second}{clear}"
        self.assertEqual(shown.getvalue(), expected)

    def test_a_notebook_gets_a_bar_that_is_updated(self) -> None:
        handle = Handle()
        shell = types.SimpleNamespace(kernel=object())
        modules = {
            "IPython": types.SimpleNamespace(get_ipython=lambda: shell),
            "IPython.display": types.SimpleNamespace(display=handle.display),
        }
        with mock.patch.dict(sys.modules, modules), contextlib.redirect_stderr(io.StringIO()) as shown:
            self.assertEqual(self.run_study(SCRIPT, 6), "out: full")
        self.assertEqual(shown.getvalue(), "")
        pages = [content["text/html"] for content in handle.shown]
        bars = [page for page in pages if '<progress max="100" value="20"></progress>' in page]
        self.assertIn("12/64 evaluations", bars[0])
        self.assertTrue(any('value="90"' in page and "tile b.png" in page for page in pages), pages)
        self.assertEqual(handle.shown[-1]["text/plain"], "tile b.png: not readable")

    def test_other_places_get_lines_without_a_bar(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            self.run_study('#!/bin/sh\ntest -t 2 && exit 70\nprintf "half" >&2; sleep 0.1; echo " a line" >&2', 6)
        self.assertEqual(shown.getvalue(), "half a line\n")


if __name__ == "__main__":
    unittest.main()
