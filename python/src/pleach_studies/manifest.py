"""Writes the manifest of operations that are declared with :func:`pleach_studies.operation`.

    python -m pleach_studies.manifest MODULE ... [--out pleach.toml]
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.metadata
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from . import _toml
from ._operation import DECLARATION, Declaration, Ports, argument


def declarations(modules: Iterable[ModuleType]) -> list[Declaration]:
    """Returns the declared operations of modules, in the order of their definitions."""
    found: list[Declaration] = []
    for module in modules:
        for item in vars(module).values():
            declaration = getattr(item, DECLARATION, None)
            # A function that is imported from another module belongs to that one.
            if isinstance(declaration, Declaration) and declaration.function.__module__ == module.__name__:
                found.append(declaration)
    return found


def written(modules: Sequence[ModuleType]) -> str:
    """Returns the manifest of the operations that modules declare.

    Raises :class:`ValueError` if they declare none, or if a value is not allowed.
    """
    found = declarations(modules)
    if not found:
        names = ", ".join(module.__name__ for module in modules)
        raise ValueError(f"{names}: no function is declared with pleach_studies.operation")
    lines = ["# Written by python -m pleach_studies.manifest from the declarations in the modules.", ""]
    lines.append(_toml.section("[package]", {"requires": required(modules)}))
    for declaration in found:
        entries: dict[str, object] = {
            "name": declaration.name,
            "version": declaration.version,
            "inputs": _ports(declaration.inputs) or None,
            "outputs": _ports(declaration.outputs),
            "arguments": [argument(name, values) for name, values in declaration.arguments.items()] or None,
            **declaration.settings,
        }
        lines.append(_toml.section("[[operation]]", entries))
    return "\n".join(lines)


def required(modules: Iterable[ModuleType]) -> list[str]:
    """Returns the distributions that modules import, directly or through files beside them."""
    waiting = [Path(module.__file__) for module in modules if module.__file__]
    folders = {path.parent for path in waiting}
    seen: set[Path] = set()
    tops: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _imports(ast.parse(path.read_bytes(), str(path))):
            top = name.partition(".")[0]
            tops.add(top)
            beside = [folder / f"{name.replace('.', '/')}.py" for folder in folders]
            waiting.extend(file for file in beside if file.is_file())
    installed = _distributions()
    names = {name for top in tops - set(sys.stdlib_module_names) for name in installed.get(top, [])}
    return sorted(names, key=str.lower)


def _distributions() -> Mapping[str, list[str]]:
    """Returns the names of distributions by top-level module."""
    if sys.version_info >= (3, 11):
        return importlib.metadata.packages_distributions()
    # Python 3.10 misses distributions without top_level.txt, such as numpy.
    found: dict[str, list[str]] = {}
    for distribution in importlib.metadata.distributions():
        listed = (distribution.read_text("top_level.txt") or "").split()
        files = [file.parts for file in distribution.files or []]
        folders = {parts[0] for parts in files if len(parts) > 1}
        modules = {parts[0].removesuffix(".py") for parts in files if len(parts) == 1 and parts[0].endswith(".py")}
        for top in {*listed, *folders, *modules}:
            found.setdefault(top, []).append(distribution.metadata["Name"])
    return found


def _imports(tree: ast.AST) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _ports(ports: Ports) -> list[dict[str, object]]:
    def keys(port: object) -> dict[str, object]:
        return {"type": port} if isinstance(port, str) else dict(port)  # type: ignore[call-overload]

    return [{"name": name, **keys(port)} for name, port in ports.items()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m pleach_studies.manifest", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("module", nargs="+", help="module in the working folder, without .py")
    parser.add_argument("--out", type=Path, help="file to write [default: standard output]")
    given = parser.parse_args(arguments)
    sys.path.insert(0, "")
    try:
        text = written([importlib.import_module(name) for name in given.module])
    except (ImportError, ValueError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if given.out is None:
        print(text, end="")
    else:
        given.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
