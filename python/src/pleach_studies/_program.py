"""Finds and runs the program pleach."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import _progress

class PleachError(RuntimeError):
    """Error of the program pleach.

    ``message`` is pleach's message in one line: the file, the field, the value and the allowed values. ``code`` is
    the exit status: 2 for a wrong input or argument, 3 for failed runs or corrupt files, 4 for an unreachable
    manager, 5 for an interruption, 6 for a full disk, 70 for an internal error, negative for a signal.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message, code)
        self.message = message
        self.code = code

    def __str__(self) -> str:
        return self.message


class PleachWarning(UserWarning):
    """Warning about results: failed runs of a study."""


def find_program() -> str:
    """Returns the path of the program.

    It is the environment variable ``PLEACH``, else the program of the wheel, else ``pleach`` in ``PATH``.

    Raises :class:`FileNotFoundError` if there is no such program.
    """
    named = os.environ.get("PLEACH")
    # A wheel that `scripts/build-wheel` built holds the program that the package was tested with.
    packed = Path(__file__).with_name("_bin") / "pleach"
    if not named and packed.is_file():
        return str(packed)
    found = shutil.which(named or "pleach")
    if found is None:
        if named:
            raise FileNotFoundError(f"PLEACH={named}: no such program; the path of pleach is needed")
        raise FileNotFoundError("pleach: not found in PATH; install pleach, or set PLEACH to its path")
    return os.path.abspath(found)


def call(arguments: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None) -> str:
    """Runs pleach to its end and returns its standard output.

    ``folder`` is the temporary folder of the files of the call. Its path is removed from error messages. ``variables``
    are added to the environment.
    """
    command = [find_program(), *map(str, arguments)]
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, env=environment)
    if done.returncode != 0:
        raise error(done.stderr.decode(errors="replace"), done.returncode, folder)
    return done.stdout.decode()


def stream(arguments: Sequence[str | Path], folder: Path, quiet: bool) -> int:
    """Runs pleach, shows its standard error unless ``quiet``, and returns 0 or 3.

    A terminal and a notebook show pleach's progress bar. Elsewhere the lines are copied to ``sys.stderr``.

    Other exit statuses raise :class:`PleachError`. On :class:`KeyboardInterrupt` pleach is interrupted once, stores
    the computed responses and ends before the exception continues.
    """
    place = None if quiet else _progress.place()
    command = [find_program(), *map(str, arguments), *([] if place else ["--json"])]
    environment = {**os.environ, **({"TERM": "xterm"} if place == "notebook" else {})}
    screen = _progress.Screen(place, quiet)
    source, sink = _progress.terminal() if place else os.pipe()
    try:
        with tempfile.TemporaryFile() as output:
            # A session of its own: a Ctrl-C in the terminal reaches pleach once, through this process.
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=sink, start_new_session=True, env=environment
            )
            os.close(sink)
            sink = -1
            with child:
                try:
                    screen.copy(source)
                    code = child.wait()
                except KeyboardInterrupt:
                    child.send_signal(signal.SIGINT)
                    screen.copy(source)
                    child.wait()
                    raise
                except BaseException:
                    child.kill()
                    raise
    finally:
        os.close(source)
        if sink >= 0:
            os.close(sink)
    screen.close()
    if code not in (0, 3):
        raise error(screen.text(), code, folder)
    return code


def error(text: str, code: int, folder: Path) -> PleachError:
    """Returns the error of an exit status, with the message that standard error ends with."""
    lines = [line for line in text.replace(f"{folder}{os.sep}", "").splitlines() if line.strip()]
    found = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    message = found[-1] if found else lines[-1] if lines else f"pleach ended with exit status {code}"
    return PleachError(message, code)
