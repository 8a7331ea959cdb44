"""Describes a Python environment and the modules of a package, without importing them.

pleach runs this file with the interpreter of the environment. It reads a request as JSON from stdin:

    {"folder": FOLDER, "requires": [DISTRIBUTION, ...], "modules": [MODULE, ...]}

or {"distribution": DISTRIBUTION}, to find its manifest,

and writes one JSON document to stdout: the interpreter, the installed distributions that the package requires (with all
distributions that these require), and for each module the files of the package that it imports.
"""

import sys

# Parsed by every Python, so that an old one is named by its version instead of a syntax error.
if sys.version_info < (3, 10):
    sys.stdout.write('{"too_old": "%d.%d.%d"}' % sys.version_info[:3])
    sys.exit(0)

import ast
import hashlib
import importlib.metadata as metadata
import importlib.util
import json
import os
import platform
import re
import urllib.parse
import urllib.request

GROUP, MANIFEST = "pleach.operations", "pleach.toml"


def normalized(name):
    """Returns the name of a distribution as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(requires, installed):
    """Returns the required distributions and all that they require, and the required ones that are missing."""
    found, missing, waiting = {}, [], [(name, True) for name in requires]
    while waiting:
        requirement, is_own = waiting.pop()
        name = re.match(r"\s*([A-Za-z0-9._-]*)", requirement).group(1)
        key = normalized(name)
        if key in found or name in missing:
            continue
        distribution = installed.get(key)
        if distribution is None:
            if is_own:
                missing.append(name)
            continue
        found[key] = distribution
        for needed in distribution.requires or []:
            # Optional parts of a distribution are named in `requires` of the manifest if they are used.
            if "extra" not in needed.partition(";")[2]:
                waiting.append((needed, False))
    return found, missing


def editable_source(distribution):
    """Returns the source folder of a distribution that is installed as editable (PEP 610). None for others."""
    direct = json.loads(distribution.read_text("direct_url.json") or "{}")
    if not direct.get("dir_info", {}).get("editable"):
        return None
    return urllib.request.url2pathname(urllib.parse.urlparse(direct["url"]).path)


def content(folder):
    """Returns the digest of the sources below a folder, by path and content."""
    hasher = hashlib.sha256()
    for parent, folders, files in os.walk(folder):
        # Hidden folders, such as .git and .venv, have no source of the distribution.
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".so", ".pyx", ".toml", ".json")):
                path = os.path.join(parent, name)
                with open(path, "rb") as stream:
                    hasher.update(os.path.relpath(path, folder).encode() + b"\0")
                    hasher.update(hashlib.sha256(stream.read()).digest())
    return hasher.hexdigest()


def determines_results(line):
    """Returns whether a line of RECORD names a file that functions can read: the same in every environment of a version."""
    file = line.partition(",")[0]
    # Compiled files are listed once Python has written them. Scripts contain the path of the environment. The others depend on
    # the program that has installed the distribution.
    return "__pycache__" not in file and not file.startswith(("../", "/")) and ".dist-info/" not in file


def described(distribution):
    source = editable_source(distribution)
    record = distribution.read_text("RECORD") or distribution.read_text("installed-files.txt") or ""
    lines = sorted(line for line in record.splitlines() if determines_results(line))
    return {
        "name": normalized(distribution.metadata["Name"]),
        "version": distribution.version,
        "record": content(source) if source else hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        "source": source,
        "tops": sorted(tops(distribution)),
    }


def source(folder, module):
    """Returns the file of a module in the folder, relative to it. None if it is not there."""
    path = os.path.join(*module.split("."))
    for candidate in (os.path.join(path, "__init__.py"), path + ".py"):
        if os.path.isfile(os.path.join(folder, candidate)):
            return candidate
    return None


def imported(tree, module, is_package):
    """Yields the names that the statements of a module import, absolute. Some may be attributes rather than modules."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".") if package else []
                parts = parts[: len(parts) - (node.level - 1)]
                base = ".".join(parts + ([base] if base else []))
            if base:
                yield base
            yield from ((base + "." if base else "") + alias.name for alias in node.names)


def imports(folder, module):
    """Returns the files of the folder that a module imports, with its own, by module."""
    files, waiting = {}, [module]
    while waiting:
        name = waiting.pop()
        # Importing a.b runs a/__init__.py.
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            part = ".".join(parts[:depth])
            file = source(folder, part)
            if part in files or file is None:
                continue
            files[part] = file
            with open(os.path.join(folder, file), "rb") as stream:
                tree = ast.parse(stream.read(), file)
            waiting.extend(imported(tree, part, file.endswith("__init__.py")))
    return files


def distributions():
    installed = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        # The first one on the path is the one that is imported.
        if name and normalized(name) not in installed:
            installed[normalized(name)] = distribution
    return installed


def manifest_of(name):
    """Returns the manifest of an installed distribution, or why there is none."""
    distribution = distributions().get(normalized(name))
    if distribution is None:
        return {"mistake": f"not installed; install with {sys.executable} -m pip install {name}"}
    points = [point for point in distribution.entry_points if point.group == GROUP]
    if len(points) != 1:
        return {"mistake": f"{len(points)} entry points of the group {GROUP}; 1 is allowed"}
    top, *rest = points[0].value.partition(":")[0].split(".")
    # Finding a top-level package imports nothing.
    found = importlib.util.find_spec(top)
    if found is None or not found.submodule_search_locations:
        return {"mistake": f"the entry point names {points[0].value}; a package with {MANIFEST} is allowed"}
    manifest = os.path.join(list(found.submodule_search_locations)[0], *rest, MANIFEST)
    if not os.path.isfile(manifest):
        return {"mistake": f"{manifest} is missing; the package of the entry point must have it"}
    return {"manifest": manifest}


def main():
    request = json.load(sys.stdin)
    if "distribution" in request:
        sys.stdout.write(json.dumps(manifest_of(request["distribution"])))
        return
    installed = distributions()
    found, missing = closure(["numpy"] + request["requires"], installed)
    modules, mistakes = {}, []
    for module in request["modules"]:
        try:
            modules[module] = imports(request["folder"], module)
        except SyntaxError as error:
            mistakes.append(f"{error.filename}, line {error.lineno}: {error.msg}")
        except ValueError as error:
            mistakes.append(f"{module}: {error}")
    answer = {
        "implementation": platform.python_implementation(),
        "version": platform.python_version(),
        "platform": sys.platform + "-" + platform.machine(),
        "prefix": sys.prefix,
        "distributions": [described(found[name]) for name in sorted(found)],
        "missing": sorted(missing),
        "modules": modules,
        "mistakes": mistakes,
    }
    sys.stdout.write(json.dumps(answer))


main()
