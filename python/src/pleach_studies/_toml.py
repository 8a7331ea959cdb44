"""Writes the subset of TOML that study files use."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import numpy as np

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def key(name: str) -> str:
    """Returns a key, quoted where needed."""
    return name if _BARE.match(name) else text(name)


def text(value: str) -> str:
    """Returns a basic string. JSON's escapes are valid in TOML, except for surrogates and DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def value(item: object) -> str:
    """Returns a value: text, path, number, boolean, list, array or mapping (as an inline table).

    Raises :class:`TypeError` for any other type and :class:`ValueError` for a number that is not finite.
    """
    if isinstance(item, np.generic | np.ndarray):
        item = cast("object", item.tolist())
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int):
        return str(item)
    if isinstance(item, float):
        if not math.isfinite(item):
            raise ValueError(f"{item} is not allowed; finite numbers are allowed")
        return repr(item)
    if isinstance(item, str | Path):
        return text(str(item))
    if isinstance(item, Mapping):
        entries = cast("Mapping[object, object]", item).items()
        pairs = ", ".join(f"{key(str(name))} = {value(entry)}" for name, entry in entries if entry is not None)
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(item, list | tuple | range):
        return f"[{', '.join(value(entry) for entry in cast('Iterable[object]', item))}]"
    raise TypeError(f"a value of type {type(item).__name__} cannot be written to a study file")


def section(header: str, entries: Mapping[str, object]) -> str:
    """Returns a table with its entries, one per line. Entries that are ``None`` are left out."""
    lines = [f"{key(name)} = {value(entry)}" for name, entry in entries.items() if entry is not None]
    return "\n".join([header, *lines, ""])
