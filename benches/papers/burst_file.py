"""Burst file of `pleach simulate` for a cluster of one node that starts no further workers."""

from __future__ import annotations

TEMPLATE = """[study]
file = "study.toml"
run = "{run}"
reuse = "{reuse}"
{more}[base]
nodes = 1
cores = {cores}
[[pool]]
name = "none"
cores = 1
price_per_hour = 0
startup_seconds = 0
max = 1
[[policy]]
kind = "fixed"
"""


def burst_file(run: str, cores: int, reuse: str = "tree", **study: int) -> str:
    """The file: `run` is the measured run, `study` further keys of its section, such as `tiles`."""
    more = "".join(f"{key} = {value}\n" for key, value in study.items())
    return TEMPLATE.format(run=run, cores=cores, reuse=reuse, more=more)
