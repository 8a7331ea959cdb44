"""Top-level modules of installed distributions.

pleach runs this file and `describe.py`, `worker.py` or `instrument/main.py` as one program.
"""


def tops(distribution):
    """Returns the top-level modules of a distribution."""
    names = set()
    for file in distribution.files or []:
        first = file.parts[0]
        if first in ("..", "__pycache__") or first.endswith((".dist-info", ".egg-info", ".data")):
            continue
        if len(file.parts) > 1:
            names.add(first)
        elif first.endswith((".py", ".so", ".pyd")):
            names.add(first.split(".")[0])
    # Packages of operating systems have no list of files.
    return names or set((distribution.read_text("top_level.txt") or distribution.metadata["Name"]).split())


def distributions_by_top():
    """Returns the names of distributions by top-level module. `packages_distributions` of Python 3.10 misses those without
    `top_level.txt`, such as numpy."""
    from importlib import metadata

    found = {}
    for distribution in metadata.distributions():
        for top in tops(distribution):
            found.setdefault(top, []).append(distribution.metadata["Name"])
    return found
