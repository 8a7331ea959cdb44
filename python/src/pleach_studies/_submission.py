"""Studies on a manager of a cluster."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import time
import warnings
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _progress
from ._program import PleachError, PleachWarning, call
from ._results import Results

#: 0.5 s between requests, as `pleach submit --wait`.
_LOOK_EVERY = 0.5

_OVER = ("complete", "canceled", "failed")


class Connection:
    """Address of a manager and the credentials of a client, as options of pleach."""

    def __init__(
        self,
        url: str,
        ca: str | Path | None,
        token: str | None,
        certs: str | Path | None,
        timeout: float | None,
    ) -> None:
        if ca is not None and certs is not None:
            raise ValueError("one of ca and certs is allowed: ca with a token, certs with a client's certificate")
        if ca is not None and token is None and not os.environ.get("PLEACH_TOKEN"):
            raise ValueError("token: missing; ca needs the manager's token, or PLEACH_TOKEN in the environment")
        if ca is None and certs is None and not os.environ.get("PLEACH_CERTS"):
            raise ValueError("ca and certs: missing; one of them is needed, or PLEACH_CERTS in the environment")
        self._folder = tempfile.mkdtemp(prefix="pleach-studies-")
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self.url = url
        #: The token is not among the arguments: every user of the machine can read those.
        self.variables = {} if token is None else {"PLEACH_TOKEN": token}
        self.options = [f"--manager={url}"]
        if ca is not None:
            if not Path(ca).is_file():
                raise FileNotFoundError(f"ca: {ca}: no such file; the authority's certificate (ca.pem) is needed")
            shutil.copy(ca, Path(self._folder, "ca.pem"))
            certs = self._folder
        if certs is not None:
            self.options.append(f"--certs={certs}")
        if timeout is not None:
            self.options.append(f"--timeout={math.ceil(timeout)}s")

    def call(self, *arguments: str | Path) -> str:
        """Runs a command of pleach on the manager and returns its standard output. Raises :class:`PleachError`."""
        return call([*arguments, *self.options], Path(self._folder), self.variables)


class Submission:
    """A study on a manager. :meth:`Study.submit` returns it.

    ``Submission(id, url, ca=..., token=...)`` is the submission of another process: its ``id`` is in
    ``pleach status`` and in :attr:`id`. The credentials are those of :meth:`Study.submit`.

    All methods raise :class:`PleachError` with ``code`` 4 if the manager cannot be reached or refuses the request.
    """

    def __init__(
        self,
        id: str,
        url: str,
        *,
        ca: str | Path | None = None,
        token: str | None = None,
        certs: str | Path | None = None,
        timeout: float | None = None,
    ) -> None:
        #: Id of the study on the manager.
        self.id = id
        self._connection = Connection(url, ca, token, certs, timeout)

    @classmethod
    def on(cls, connection: Connection, id: str) -> Submission:
        """Returns a study of a connected manager."""
        found = cls.__new__(cls)
        found.id, found._connection = id, connection
        return found

    @property
    def url(self) -> str:
        """Address of the manager."""
        return self._connection.url

    def status(self) -> dict[str, Any]:
        """Returns the study's entry of ``pleach status --json``.

        ``state`` is ``"waiting"``, ``"queued"``, ``"running"``, ``"complete"``, ``"canceled"`` or ``"failed"``.
        ``message`` explains why a study waits or has failed. ``evaluations_done``, ``evaluations``, ``failed`` (runs),
        ``remaining_seconds`` and others are its progress.
        """
        [study] = json.loads(self._connection.call("status", self.id, "--json"))["studies"]
        found: dict[str, Any] = study
        return found

    def wait(self, timeout: float | None = None, *, quiet: bool = False) -> dict[str, Any]:
        """Waits until the study is complete, and returns its last :meth:`status`.

        Shows progress in terminals and notebooks unless ``quiet``. Failed runs give a :class:`PleachWarning`. An
        interruption does not end the study.

        Raises :class:`PleachError` with ``code`` 4 if the study failed or was canceled, and :class:`TimeoutError` if it
        is not over after ``timeout`` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        line = _progress.Line(quiet)
        try:
            while (status := self.status())["state"] not in _OVER:
                line.show(_words(self.id, status))
                if end is not None and time.monotonic() >= end:
                    raise TimeoutError(f"study {self.id} is {status['state']} after {timeout} s; it continues")
                time.sleep(_LOOK_EVERY)
        finally:
            line.close()
        if status["state"] != "complete":
            reason = f": {status['message']}" if status.get("message") else ""
            raise PleachError(f"study {self.id} is {status['state']}{reason}", 4)
        if status["failed"]:
            text = f"{status['failed']} runs failed; see the results' `failed`"
            warnings.warn(text, PleachWarning, stacklevel=2)
        return status

    def results(self, folder: str | Path | None = None, *, timeout: float | None = None, quiet: bool = False) -> Results:
        """Waits for the end of the study, fetches its results into a folder and returns them.

        ``folder`` is the study's name by default. It must not hold results of another study. Raises as :meth:`wait`.
        """
        status = self.wait(timeout, quiet=quiet)
        folder = Path(status["name"] if folder is None else folder)
        self._connection.call("results", self.id, f"--out={folder}")
        return Results(folder)

    def cancel(self) -> dict[str, Any]:
        """Ends the study without results, and returns its :meth:`status`."""
        self._connection.call("cancel", self.id)
        return self.status()

    def __repr__(self) -> str:
        return f"Submission({self.id!r}, {self.url!r})"


def submit(study: Path, connection: Connection, options: Sequence[str]) -> Submission:
    """Submits a study file and sends the input files that the manager lacks."""
    document = json.loads(connection.call("submit", study, "--json", *options))
    return Submission.on(connection, str(document["id"]))


def _words(id: str, status: dict[str, Any]) -> str:
    words = [f"study {id} is {status['state']}: {status['evaluations_done']}/{status['evaluations']} evaluations"]
    if status["failed"]:
        words.append(f"{status['failed']} runs failed")
    if status.get("remaining_seconds") is not None:
        words.append(f"about {round(status['remaining_seconds'])} s left")
    if status.get("message"):
        words.append(str(status["message"]))
    return ", ".join(words)
