"""Shows the standard error of pleach, with its progress bar, in terminals and notebooks."""

from __future__ import annotations

import codecs
import errno
import fcntl
import html
import os
import re
import select
import struct
import sys
import termios
import time
from collections import deque
from importlib import import_module
from typing import Any, Literal

#: 0.2 s between the frames that a notebook shows: each one is a message to the browser.
_FRAME_EVERY = 0.2

#: Ends of lines, and pleach's commands to the terminal: up by rows, and clear from the cursor on.
_CONTROL = re.compile(r"(\n|\r|\x1b\[(?:\d+A|J))")
_PERCENT = re.compile(r"^[=> ]{6,}(\d+) %  (.*)$")


def place() -> Literal["terminal", "notebook"] | None:
    """Returns where progress can be shown. ``None`` if ``sys.stderr`` is a file or a pipe."""
    shell = _shell()
    if shell is not None and getattr(shell, "kernel", None) is not None:
        return "notebook"
    try:
        return "terminal" if sys.stderr.isatty() else None
    except ValueError:  # It is closed.
        return None


def terminal() -> tuple[int, int]:
    """Opens a pseudo-terminal of the size of ``sys.stderr``, or of 80 columns. Returns what to read and what to write."""
    source, sink = os.openpty()
    attributes = termios.tcgetattr(sink)
    # The real terminal translates ends of lines.
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(sink, termios.TCSANOW, attributes)
    size = struct.pack("HHHH", 24, 80, 0, 0)
    try:
        size = fcntl.ioctl(sys.stderr.fileno(), termios.TIOCGWINSZ, size)
    except (OSError, ValueError):
        pass
    fcntl.ioctl(sink, termios.TIOCSWINSZ, size)
    return source, sink


class Screen:
    """Copies pleach's standard error to its place, without the line of the error, which becomes an exception."""

    def __init__(self, place: Literal["terminal", "notebook"] | None, quiet: bool) -> None:
        self._place, self._quiet = place, quiet
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._rows = [""]
        self._up = 0
        self._tokens: deque[str] = deque()
        self._left = ""
        self._board = Board() if place == "notebook" else None

    def copy(self, source: int) -> None:
        """Copies until pleach closes its end. After an interruption, a second call continues."""
        while True:
            while self._tokens:
                self._show(self._tokens.popleft())
            # A frame has no end: its last line is shown, unless the rest of the line decides how.
            if self._left and not self._left.startswith(("e", "\x1b")):
                left, self._left = self._left, ""
                self._show(left)
            shown = self._board is None or self._board.show(self._shown())
            if not shown and not select.select([source], [], [], _FRAME_EVERY)[0]:
                continue
            try:
                read = os.read(source, 65536)
            except OSError as error:
                if error.errno != errno.EIO:  # A pseudo-terminal without a writer.
                    raise
                read = b""
            if not read:
                break
            *complete, self._left = _CONTROL.split(self._left + self._decode(read))
            self._tokens.extend(complete)

    def close(self) -> None:
        """Shows the last frame."""
        if self._left:
            self._show(self._left)
        if self._board:
            self._board.show(self._shown(), final=True)

    def text(self) -> str:
        """Returns all lines, without bars."""
        return "\n".join(self._rows)

    def _show(self, token: str) -> None:
        if token == "\n":
            self._rows.append("")
        elif token == "\x1b[J":
            del self._rows[len(self._rows) - self._up :]
            self._rows = self._rows or [""]
            self._rows[-1], self._up = "", 0
        elif token.startswith("\x1b["):
            self._up = int(token[2:-1])
        elif token != "\r":
            self._rows[-1] += token
        if not self._quiet and self._place != "notebook" and not self._is_error(token):
            sys.stderr.write(token)
            sys.stderr.flush()

    def _is_error(self, token: str) -> bool:
        if token == "\n":
            return len(self._rows) > 1 and self._rows[-2].startswith("error: ")
        return self._rows[-1].startswith("error: ") and not token.startswith(("\x1b", "\r"))

    def _shown(self) -> list[str]:
        return [row for row in self._rows if row.strip() and not row.startswith("error: ")]


class Board:
    """Lines in the output of a notebook's cell, redrawn in place."""

    def __init__(self) -> None:
        self._display: Any = None
        self._lines: list[str] = []
        self._last = 0.0

    def show(self, lines: list[str], final: bool = False) -> bool:
        """Shows lines. Returns whether it has: unless ``final``, they must wait if the last frame is too new."""
        now = time.monotonic()
        if lines == self._lines:
            return True
        if not final and now - self._last < _FRAME_EVERY:
            return False
        self._lines, self._last = lines, now
        content = {"text/plain": "\n".join(lines), "text/html": "<br>".join(map(_html, lines))}
        if self._display is None:
            self._display = import_module("IPython.display").display(content, raw=True, display_id=True)
        else:
            self._display.update(content, raw=True)
        return True


class Line:
    """One line of progress in a terminal or a notebook. Other places show nothing."""

    def __init__(self, quiet: bool) -> None:
        self._place = None if quiet else place()
        self._board = Board() if self._place == "notebook" else None

    def show(self, text: str) -> None:
        """Replaces the line."""
        if self._board:
            self._board.show([text])
        elif self._place:
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()

    def close(self) -> None:
        """Removes the line."""
        if self._board:
            self._board.show([], final=True)
        elif self._place:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _html(line: str) -> str:
    bar = _PERCENT.match(line)
    if bar:
        return f'<progress max="100" value="{bar[1]}"></progress> {bar[1]} % &nbsp; {html.escape(bar[2])}'
    return html.escape(line)


def _shell() -> Any:
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()
