"""RTMA and the depth-first order of RMSR on task trees, as paper 003 describes them: for what pleach does not do by itself.

pleach runs buckets side by side. The papers' worker gives all its threads to a bucket, so that shared tasks run while other
threads wait. This module computes the time of that.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import reuse_designs as designs

Keys = tuple[tuple[float, ...], ...]


def keys(sets: Sequence[designs.Set]) -> list[Keys]:
    """The values that each task of the segmentation reads, for each distinct set: one stage instance."""
    found = (tuple(tuple(values[name] for name in names) for names in designs.TASKS.values()) for values in sets)
    return list(dict.fromkeys(found))


def rtma(instances: Sequence[Keys], size: int) -> list[list[Keys]]:
    """Buckets of RTMA (001 Algorithm 3): full ones from the longest shared prefixes down, then a bucket for each first task."""
    buckets, left = [], list(instances)
    for shared in range(len(left[0]) - 1, 0, -1):
        groups: dict[Keys, list[Keys]] = {}
        for instance in left:
            groups.setdefault(instance[:shared], []).append(instance)
        left = []
        for group in groups.values():
            full = len(group) // size * size
            buckets += [group[at : at + size] for at in range(0, full, size)]
            left += group[full:]
    rest: dict[Keys, list[Keys]] = {}
    for instance in left:
        rest.setdefault(instance[:1], []).append(instance)
    return buckets + list(rest.values())


def tasks(bucket: Sequence[Keys]) -> set[Keys]:
    """Distinct tasks of a bucket, each as the prefix of keys that ends with it."""
    return {instance[: level + 1] for instance in bucket for level in range(len(instance))}


def reuse(buckets: Sequence[Sequence[Keys]]) -> float:
    """Share of the tasks of all instances that buckets save."""
    every = sum(len(instance) for bucket in buckets for instance in bucket)
    return 1 - sum(len(tasks(bucket)) for bucket in buckets) / every


def makespan(bucket: Sequence[Keys], threads: int) -> float:
    """Seconds of a bucket whose ready task of the greatest depth runs first, on this number of threads (003 Algorithm 1)."""
    costs = list(designs.SECONDS.values())
    children: dict[Keys, list[Keys]] = {}
    for task in tasks(bucket):
        children.setdefault(task[:-1], []).append(task)
    stack, running, now = list(children[()]), [], 0.0
    while stack or running:
        while stack and len(running) < threads:
            task = stack.pop()
            heapq.heappush(running, (now + costs[len(task) - 1], task))
        now, task = heapq.heappop(running)
        stack.extend(children.get(task, ()))
    return now


def total(buckets: Sequence[Sequence[Keys]], threads: int) -> float:
    """Seconds of all buckets, one after the other, each on all threads."""
    return math.fsum(makespan(bucket, threads) for bucket in buckets)
