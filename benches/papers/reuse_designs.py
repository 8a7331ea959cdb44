"""The authors' designs, as in their Dakota inputs: continuous ranges, integers truncated afterwards, connectivities among them.

The same points as in crates/reuse/benches/papers/designs.rs, seed for seed. The project's samplers are not used for these,
because they sample grids and would share more than the published designs.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

# Name, range, and whether the authors' code truncates the value.
PARAMETERS = (
    ("B", 210.0, 240.0, True),
    ("G", 210.0, 240.0, True),
    ("R", 210.0, 240.0, True),
    ("T1", 2.5, 7.5, False),
    ("T2", 2.5, 7.5, False),
    ("MorphRecon", 4.0, 8.0, True),
    ("G1", 5.0, 80.0, True),
    ("FillHoles", 4.0, 8.0, True),
    ("minSize", 2.0, 40.0, True),
    ("maxSize", 900.0, 1500.0, True),
    ("G2", 2.0, 40.0, True),
    ("minSizePl", 5.0, 80.0, True),
    ("Watershed", 4.0, 8.0, True),
    ("minSizeSeg", 2.0, 80.0, True),
    ("maxSizeSeg", 900.0, 1500.0, True),
)
NAMES = [name for name, *_ in PARAMETERS]

# Parameters of each task of the segmentation, in the papers' order.
TASKS = {
    "t1": ("B", "G", "R", "T1", "T2"),
    "t2": ("MorphRecon",),
    "t3": ("G1", "FillHoles"),
    "t4": ("minSize", "maxSize"),
    "t5": ("G2",),
    "t6": ("minSizePl", "Watershed"),
    "t7": ("minSizeSeg", "maxSizeSeg", "FillHoles"),
}
# Thesis Table 4.3: seconds of each task on a tile.
SECONDS = {"t1": 1.14, "t2": 1.99, "t3": 0.65, "t4": 0.33, "t5": 0.76, "t6": 3.76, "t7": 0.86}

# Defaults of the workflow, for parameters that a study does not vary.
DEFAULTS = {
    "B": 220, "G": 220, "R": 220, "T1": 5.0, "T2": 4.0, "MorphRecon": 8, "G1": 80, "FillHoles": 4, "minSize": 11,
    "maxSize": 1000, "G2": 45, "minSizePl": 30, "Watershed": 8, "minSizeSeg": 21, "maxSizeSeg": 1000,
}  # fmt: skip

# Parameters of the authors' VBD input, in its order. Paper 001 Table 3 has Watershed in place of minSizeSeg.
EIGHT = ("T2", "G1", "G2", "minSize", "maxSize", "minSizePl", "minSizeSeg", "MorphRecon")

Set = dict[str, float]


class Random:
    """Random numbers of sufficient quality (SplitMix64: Steele, Lea and Flood 2014)."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def next(self) -> int:
        """A number of 64 bits."""
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        word = self.state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        return word ^ (word >> 31)

    def unit(self) -> float:
        """A number in [0, 1)."""
        return (self.next() >> 11) / (1 << 53)

    def below(self, bound: int) -> int:
        """A whole number in [0, bound)."""
        return self.next() % bound

    def shuffle(self, items: list) -> None:
        """Shuffles in place (Fisher and Yates)."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


def value(name: str, unit: float) -> float:
    """The value of a parameter at a place between 0 and 1 of its range."""
    _, low, high, truncated = PARAMETERS[NAMES.index(name)]
    found = low + unit * (high - low)
    return math.trunc(found) if truncated else found


@functools.cache
def moat(evaluations: int, seed: int = 500) -> list[Set]:
    """A MOAT design as PSUADE draws it with 20 partitions: 22 levels, steps of half of them, all 15 parameters.

    Callers share the sets, and do not change them.
    """
    levels_count = 22
    random, sets = Random(seed), []
    while len(sets) < evaluations:
        levels = [random.below(levels_count) for _ in PARAMETERS]
        order = list(range(len(PARAMETERS)))
        random.shuffle(order)
        sets.append(point(levels, levels_count))
        for parameter in order:
            step = levels_count // 2
            levels[parameter] += step if levels[parameter] < step else -step
            sets.append(point(levels, levels_count))
    return sets[:evaluations]


def point(levels: Sequence[int], count: int) -> Set:
    """The parameter set at these levels."""
    return {name: value(name, level / (count - 1)) for name, level in zip(NAMES, levels, strict=True)}


@functools.cache
def vbd(sampler: str, samples: int, seed: int = 500) -> list[Set]:
    """Ten sets for each of `samples` rows: rows of two matrices, and of the first with each column of the second.

    `sampler` is "mc", "lhs" or "halton". Callers share the sets, and do not change them.
    """
    random = Random(seed)
    columns = [units(sampler, column, samples, random) for column in range(16)]

    def drawn(row: int, is_second: Callable[[int], bool]) -> Set:
        return DEFAULTS | {
            name: value(name, columns[at + (8 if is_second(at) else 0)][row]) for at, name in enumerate(EIGHT)
        }

    sets = []
    for row in range(samples):
        sets += [drawn(row, lambda _: False), drawn(row, lambda _: True)]
        sets += [drawn(row, lambda at, column=column: at == column) for column in range(8)]
    return sets


def units(sampler: str, column: int, samples: int, random: Random) -> list[float]:
    """A column of numbers between 0 and 1."""
    if sampler == "mc":
        return [random.unit() for _ in range(samples)]
    if sampler == "lhs":
        strata = [(stratum + random.unit()) / samples for stratum in range(samples)]
        random.shuffle(strata)
        return strata
    prime = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)[column]
    return [radical_inverse(number, prime) for number in range(1, samples + 1)]


def radical_inverse(number: int, prime: int) -> float:
    """The digits of a number behind the point, in reverse: a coordinate of Halton's sequence."""
    unit, weight = 0.0, 1.0
    while number > 0:
        weight /= prime
        unit += weight * (number % prime)
        number //= prime
    return unit


def write(path: Path, sets: Sequence[Set]) -> None:
    """Writes sets as CSV, a row for each, for --parameter-sets."""
    with path.open("w", newline="") as file:
        rows = csv.DictWriter(file, NAMES)
        rows.writeheader()
        rows.writerows(sets)
