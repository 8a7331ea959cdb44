"""How the program is called, with shell scripts in its place."""

import io
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stderr
from pathlib import Path
from unittest import mock

import pleach_studies
from pleach_studies import PleachError, Study, find_program


class Interrupting(io.StringIO):
    """Raises KeyboardInterrupt at the first line, as Ctrl-C does."""

    def write(self, text: str) -> int:
        first = not self.getvalue()
        super().write(text)
        if first:
            raise KeyboardInterrupt
        return len(text)


class Programs(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.study = Study(workflow="nuclei", tiles="*.png", method="moat")

    def replaced(self, script: str) -> None:
        program = self.folder / "pleach"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        patch = mock.patch.dict(os.environ, {"PLEACH": str(program)})
        patch.start()
        self.addCleanup(patch.stop)

    def test_the_variable_precedes_the_path(self) -> None:
        self.replaced("exit 0")
        self.assertEqual(find_program(), str(self.folder / "pleach"))
        # That of a wheel precedes the path.
        packed = Path(pleach_studies.__file__).with_name("_bin") / "pleach"
        expected = packed if packed.is_file() else self.folder / "pleach"
        with mock.patch.dict(os.environ, {"PLEACH": "", "PATH": str(self.folder)}):
            self.assertEqual(find_program(), str(expected))

    def test_messages_and_exit_statuses(self) -> None:
        for script, message, code in [
            ('echo "note" >&2; echo "error: out: full" >&2; exit 6', "out: full", 6),
            ('echo "error: $2: workflow: unknown" >&2; exit 2', "study.toml: workflow: unknown", 2),
            ('echo "thread panicked" >&2; exit 70', "thread panicked", 70),
            ("exit 4", "pleach ended with exit status 4", 4),
            ("kill -9 $$", "pleach ended with exit status -9", -9),
        ]:
            self.replaced(script)
            for call in (self.study.plan, lambda: self.study.run(quiet=True)):
                with self.subTest(script), self.assertRaises(PleachError) as caught:
                    call()
                self.assertEqual((caught.exception.message, caught.exception.code), (message, code))
                self.assertEqual(str(caught.exception), message)

    def test_an_interruption_reaches_the_program_once(self) -> None:
        self.replaced('trap "echo stored >&2; exit 5" INT; echo started >&2; while :; do sleep 0.05; done')
        shown = Interrupting()
        with redirect_stderr(shown), self.assertRaises(KeyboardInterrupt):
            self.study.run()
        self.assertEqual(shown.getvalue(), "started\nstored\n")

    def test_options(self) -> None:
        self.replaced(f'printf "%s\\n" "$@" > {self.folder}/arguments; echo "error: no" >&2; exit 2')
        with self.assertRaises(PleachError):
            named = {"python": sys.prefix, "cache": "c", "workers": 2, "memory": "1GB", "resume": True}
            self.study.run("out", **named, options=["--ssd=s"])
        arguments = (self.folder / "arguments").read_text().split("\n")
        self.assertEqual(arguments[0], "run")
        expected = f"--out=out --python={sys.prefix} --cache=c --workers=2 --memory=1GB --resume --ssd=s --json"
        self.assertEqual(arguments[2:-1], expected.split())


if __name__ == "__main__":
    unittest.main()
