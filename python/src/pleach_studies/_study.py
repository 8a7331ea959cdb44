"""A study of an image-analysis workflow."""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import _toml
from ._problem import Parameter, Problem
from ._program import PleachError, PleachWarning, call, stream
from ._results import Results
from ._submission import Connection, Submission, submit

Paths = str | Path | Sequence[str | Path]

_BUILT_IN = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(kw_only=True)
class Study:
    """A study file: workflow, inputs, method, response and parameters.

    ``workflow``
        The name of a built-in workflow, such as ``"nuclei"``, or the path of a workflow file.
    ``tiles``, ``slides``
        Files or patterns of images. One of both is needed.
    ``method``
        A method, such as ``"moat"``, or the keys of ``[method]``, such as ``{"kind": "vbd", "samples": 256}``. A list
        of such mappings is a study in phases.
    ``response``
        A metric, or a list of metrics.
    ``parameters``
        Parameters whose values differ from the workflow's, or a :class:`Problem`. Other parameters keep the workflow's
        ranges.
    ``reference``
        ``"defaults"``, or a folder of reference files. Omitted: pleach's default.
    ``both_empty``
        ``"count"`` or ``"leave-out"``: runs with an empty mask and an empty reference.
    ``input``
        Further keys of ``[input]``, such as ``{"normalize": False}``.

    Paths are relative to the working directory. pleach checks all values when the study is planned or run.
    """

    workflow: str | Path
    method: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
    response: str | Sequence[str] = "dice"
    tiles: Paths | None = None
    slides: Paths | None = None
    parameters: Iterable[Parameter] = ()
    name: str = "study"
    seed: int = 0
    reference: str | Path | None = None
    both_empty: str | None = None
    input: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if (self.tiles is None) == (self.slides is None):
            raise ValueError("one of tiles and slides is needed")
        if isinstance(self.parameters, Problem):
            # Only a problem has types: in a study the workflow determines them.
            self.parameters = tuple(replace(parameter, type=None) for parameter in self.parameters)
        self.parameters = tuple(self.parameters)

    def to_toml(self, folder: str | Path | None = None) -> str:
        """Returns the content of the study file. Its paths are relative to ``folder``, or absolute without one.

        Raises :class:`TypeError` or :class:`ValueError` for a value that a study file cannot hold.
        """

        def located(path: str | Path) -> str:
            return os.path.abspath(path) if folder is None else os.path.relpath(path, folder)

        def all_located(paths: Paths | None) -> list[str] | None:
            if paths is None:
                return None
            return [located(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]

        def method(keys: Mapping[str, Any]) -> Mapping[str, Any]:
            return {**keys, "file": located(keys["file"])} if "file" in keys else keys

        workflow = self.workflow
        if isinstance(workflow, Path) or not _BUILT_IN.match(workflow):
            workflow = located(workflow)
        reference = self.reference
        if reference is not None and reference != "defaults":
            reference = located(reference)
        images = {"tiles": all_located(self.tiles), "slides": all_located(self.slides), "reference": reference}
        sections = [
            _toml.section("[study]", {"name": self.name, "workflow": workflow, "seed": self.seed}),
            _toml.section("[input]", {**images, **self.input}),
        ]
        if isinstance(self.method, str):
            sections.append(_toml.section("[method]", {"kind": self.method}))
        elif isinstance(self.method, Mapping):
            sections.append(_toml.section("[method]", method(self.method)))
        else:
            sections.extend(_toml.section("[[phase]]", method(phase)) for phase in self.method)
        sections.append(_toml.section("[response]", {"metric": self.response, "both_empty": self.both_empty}))
        sections.extend(parameter.to_toml() for parameter in self.parameters)
        return "\n".join(sections)

    def write(self, path: str | Path) -> Path:
        """Writes the study file for ``pleach run``, with paths relative to its folder. Returns its path."""
        path = Path(path)
        path.write_text(self.to_toml(os.path.abspath(path.parent)), encoding="utf-8")
        return path

    def plan(self, *options: str) -> dict[str, Any]:
        """Plans the study with ``pleach plan --json``, which executes nothing. Returns the document.

        ``options`` are further options, such as ``"--strategy=all"``. Raises :class:`PleachError`.
        """
        with tempfile.TemporaryDirectory(prefix="pleach-studies-") as folder:
            study = self._write_in(folder)
            document: dict[str, Any] = json.loads(call(["plan", study, "--json", *options], Path(folder)))
        return document

    def run(
        self,
        out: str | Path | None = None,
        *,
        python: str | Path | None = None,
        cache: str | Path | None = None,
        workers: int | None = None,
        memory: str | None = None,
        resume: bool = False,
        overwrite: bool = False,
        quiet: bool = False,
        options: Sequence[str] = (),
    ) -> Results:
        """Runs the study with ``pleach run`` and returns its results.

        ``out`` is the folder of the results, by default the name of the study. ``python`` is the environment of
        operations in Python, ``cache`` a task cache, ``workers`` the maximum number of concurrent tasks, ``memory`` a
        size such as ``"4GB"``. ``resume`` continues an interrupted study, and ``overwrite`` replaces its results.
        ``options`` are further options, such as ``"--ssd=scratch"``. A terminal and a notebook show progress and
        warnings, and other places for ``sys.stderr`` the warnings, unless ``quiet``.

        Failed runs give a :class:`PleachWarning`, and ``Results.failed`` lists them. Other failures raise
        :class:`PleachError`. After an interruption, call again with ``resume=True``.
        """
        out = Path(self.name if out is None else out)
        named = {"python": python, "cache": cache, "workers": workers, "memory": memory}
        settings = [f"--{name}={value}" for name, value in named.items() if value is not None]
        settings += [f"--{name}" for name, value in (("resume", resume), ("overwrite", overwrite)) if value]
        with tempfile.TemporaryDirectory(prefix="pleach-studies-") as folder:
            study = self._write_in(folder)
            code = stream(["run", study, f"--out={out}", *settings, *options], Path(folder), quiet)
        results = Results(out)
        if code == 3:
            count = results.run.get("failed", "some")
            warnings.warn(f"{count} runs failed; see the results' `failed`", PleachWarning, stacklevel=2)
        return results

    def submit(
        self,
        url: str,
        *,
        ca: str | Path | None = None,
        token: str | None = None,
        certs: str | Path | None = None,
        timeout: float | None = None,
        python: str | Path | None = None,
        options: Sequence[str] = (),
    ) -> Submission:
        """Submits the study to a manager with ``pleach submit`` and sends the input files that the manager lacks.

        ``url`` is the manager's address for clients, ``https://HOST:PORT``. The credentials are ``ca``, the file
        ``ca.pem`` of the cluster's authority, with the manager's ``token``, or ``certs``, a folder with a client's
        certificate from ``pleach certs issue``. Without them, the environment variables ``PLEACH_CERTS`` and
        ``PLEACH_TOKEN`` hold them. ``timeout`` is the time in whole seconds to retry while the manager does not
        respond, by default 30. ``python`` is the environment of operations in Python. ``options`` are further options, such as
        ``"--deadline=90m"``.

        Raises :class:`ValueError` without credentials, and :class:`PleachError` with ``code`` 2 for a wrong study or
        option and 4 if the manager cannot be reached or refuses the study.
        """
        connection = Connection(url, ca, token, certs, timeout)
        settings = [] if python is None else [f"--python={python}"]
        with tempfile.TemporaryDirectory(prefix="pleach-studies-") as folder:
            try:
                return submit(self._write_in(folder), connection, [*settings, *options])
            except PleachError as error:
                raise PleachError(error.message.replace(f"{folder}{os.sep}", ""), error.code) from None

    def _write_in(self, folder: str) -> Path:
        path = Path(folder, "study.toml")
        path.write_text(self.to_toml(), encoding="utf-8")
        return path
