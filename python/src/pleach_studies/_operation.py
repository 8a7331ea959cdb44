"""Declares a function as an operation of pleach, for a manifest that `python -m pleach_studies.manifest` writes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

#: Ports: element types by name, or tables with `type` and further keys of a port.
Ports = Mapping[str, "str | Mapping[str, object]"]

#: Name of the attribute of a declared function.
DECLARATION = "__pleach_operation__"


@dataclass(frozen=True)
class Declaration:
    """Declaration of an operation."""

    function: Callable[..., Any]
    version: int
    inputs: Ports
    outputs: Ports
    arguments: Mapping[str, object]
    settings: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def name(self) -> str:
        """The name in stage files."""
        return f"python:{self.function.__module__}.{self.function.__qualname__}"


def operation(
    *,
    inputs: Ports | None = None,
    outputs: Ports,
    arguments: Mapping[str, object] | None = None,
    version: int = 1,
    **settings: object,
) -> Callable[[Function], Function]:
    """Declares a function as an operation. The function itself does not change.

    ``inputs`` and ``outputs`` map names to element types, as ``{"mask": "mask"}``, or to tables such as ``{"type": "bgr8",
    "channels": "rgb"}``. Inputs are the positional parameters of the function, in order. ``arguments`` maps the keyword
    parameters to their values:

    - ``(0.0, 20.0)``: real numbers between these, ``(1, 9)``: integers,
    - ``[1, 2, 4]``: one of these integers, ``["otsu", "li"]``: one of these texts, which a study numbers from 1.

    ``settings`` are further keys of the manifest's entry: ``constants``, ``setup``, ``files``, ``env``, ``cost``, ``memory``,
    ``timeout_seconds``, ``determinism``, ``device``, ``device_memory``.

    Raises :class:`ValueError` if the parameters of the function differ from the declaration.
    """

    def declare(function: Function) -> Function:
        declaration = Declaration(function, version, inputs or {}, outputs, arguments or {}, settings)
        _check(declaration)
        setattr(function, DECLARATION, declaration)
        return function

    return declare


def _check(declaration: Declaration) -> None:
    name = declaration.name
    if declaration.function.__module__ == "__main__":
        raise ValueError(f"{name}: functions of __main__ are not allowed; put them into a module")
    if "." in declaration.function.__qualname__:
        raise ValueError(f"{name}: a function of a module is allowed")
    positional: list[inspect.Parameter] = []
    keywords: list[inspect.Parameter] = []
    for parameter in inspect.signature(declaration.function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(f"{name}: *{parameter.name} is not allowed; inputs and arguments by name are allowed")
        (keywords if parameter.kind == parameter.KEYWORD_ONLY else positional).append(parameter)
    constants = declaration.settings.get("constants", {})
    given = set(declaration.arguments)
    if isinstance(constants, Mapping):
        given.update(cast("Mapping[str, object]", constants))
    if declaration.settings.get("determinism") == "seeded":
        given.add("seed")
    # The result of a setup comes first, and arguments need not be keyword-only.
    first = 1 if "setup" in declaration.settings else 0
    names = [parameter.name for parameter in positional][first:]
    count = len(declaration.inputs)
    if names[:count] != list(declaration.inputs):
        raise ValueError(f"{name}: the inputs are {list(declaration.inputs)}; {names[:count] or 'none'} is allowed by the function")
    known = {parameter.name for parameter in keywords} | set(names[count:])
    required = {p.name for p in [*positional[first + count :], *keywords] if p.default is p.empty}
    for unknown in sorted(given - known):
        raise ValueError(f"{name}: the function has no parameter {unknown}; {', '.join(sorted(known)) or 'none'} is allowed")
    for missing in sorted(required - given):
        raise ValueError(f"{name}: parameter {missing} is not declared; add it to inputs, arguments or constants")


def argument(name: str, values: object) -> dict[str, object]:
    """Returns an argument's entry in a manifest."""
    listed = list(cast("list[object] | tuple[object, ...]", values)) if isinstance(values, list | tuple) else []
    is_number = all(isinstance(number, int | float) and not isinstance(number, bool) for number in listed)
    is_whole = is_number and all(isinstance(number, int) for number in listed)
    if isinstance(values, tuple) and len(listed) == 2 and is_number:
        return {"name": name, "type": "integer" if is_whole else "real", "low": listed[0], "high": listed[1]}
    if isinstance(values, list) and listed and is_whole:
        return {"name": name, "type": "integer", "values": listed}
    if isinstance(values, list) and listed and all(isinstance(text, str) for text in listed):
        return {"name": name, "choices": {str(number): text for number, text in enumerate(listed, 1)}}
    raise ValueError(f"argument {name}: {values!r}; (low, high), a list of integers or a list of texts is allowed")
