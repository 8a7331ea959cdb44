"""Mean with 95 % interval, and Welch's t-test: two samples of unequal variances, two-tailed, as 000 §4.1.

The t distribution is by the regularized incomplete beta function: Numerical Recipes, 3rd edition, §6.4 (continued fraction by
the modified Lentz method).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularized incomplete beta function I_x(a, b), for a, b > 0 and 0 ≤ x ≤ 1."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        # The fraction converges fast on the other side.
        return 1 - incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * beta_fraction(a, b, x) / a


def beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function."""
    tiny = 1e-300
    c, d = 1.0, 1 / (nonzero(1 - (a + b) * x / (a + 1), tiny))
    fraction = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / nonzero(1 + term * d, tiny)
            c = nonzero(1 + term / c, tiny)
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return fraction


def nonzero(value: float, tiny: float) -> float:
    """`value`, or `tiny` in place of 0."""
    return value if abs(value) > tiny else tiny


def two_tailed(t: float, freedom: float) -> float:
    """Probability of a t value at least that far from 0, with `freedom` degrees of freedom (not necessarily whole)."""
    if math.isinf(t):
        return 0.0
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def quantile(probability: float, freedom: float) -> float:
    """The t value that `two_tailed` gives `probability`, by bisection. 0 < probability ≤ 1."""
    low, high = 0.0, 1.0
    while two_tailed(high, freedom) > probability:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if two_tailed(middle, freedom) > probability else (low, middle)
    return (low + high) / 2


@dataclass
class Mean:
    """Mean of a sample. `half` is half of the 95 % interval, infinite for one value."""

    mean: float
    half: float
    deviation: float  # of the sample
    count: int

    def __str__(self) -> str:
        digits = 2 if self.mean < 10 else 1
        if math.isinf(self.half):
            return f"{self.mean:.{digits}f}"
        return f"{self.mean:.{digits}f} ± {self.half:.{digits}f}"


def mean(values: Sequence[float]) -> Mean:
    """Mean of at least one value, with its 95 % interval by the t distribution."""
    count = len(values)
    average = math.fsum(values) / count
    if count == 1:
        return Mean(average, math.inf, 0.0, 1)
    deviation = math.sqrt(math.fsum((value - average) ** 2 for value in values) / (count - 1))
    return Mean(average, quantile(0.05, count - 1) * deviation / math.sqrt(count), deviation, count)


@dataclass
class Test:
    """Welch's test: t value, degrees of freedom (Welch–Satterthwaite), two-tailed probability."""

    t: float
    freedom: float
    p: float

    def __str__(self) -> str:
        if self.p < 0.001:
            return "P < .001"
        return f"P = {self.p:.3f}".replace("0.", ".", 1)


def welch(first: Sequence[float], second: Sequence[float]) -> Test:
    """Tests whether the means of two samples of at least two values differ."""
    if len(first) < 2 or len(second) < 2:
        raise ValueError("welch: a sample has fewer than 2 values; at least 2 are needed")
    one, two = mean(first), mean(second)
    error_one, error_two = one.deviation**2 / one.count, two.deviation**2 / two.count
    difference = one.mean - two.mean
    if error_one + error_two == 0:
        equal = difference == 0
        return Test(0.0 if equal else math.copysign(math.inf, difference), 1.0, 1.0 if equal else 0.0)
    t = difference / math.sqrt(error_one + error_two)
    freedom = (error_one + error_two) ** 2 / (
        error_one**2 / (one.count - 1) + error_two**2 / (two.count - 1)
    )
    return Test(t, freedom, two_tailed(t, freedom))


def speedup(slow: Sequence[float], fast: Sequence[float]) -> Mean:
    """Mean of `slow` / mean of `fast`, with a 95 % interval by the delta method and Welch's degrees of freedom."""
    one, two = mean(slow), mean(fast)
    ratio = one.mean / two.mean
    if min(one.count, two.count) < 2:
        return Mean(ratio, math.inf, 0.0, min(one.count, two.count))
    parts = [(sample.deviation / sample.mean) ** 2 / sample.count for sample in (one, two)]
    if sum(parts) == 0:
        return Mean(ratio, 0.0, 0.0, min(one.count, two.count))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (sample.count - 1) for part, sample in zip(parts, (one, two), strict=True)
    )
    error = ratio * math.sqrt(sum(parts))
    return Mean(ratio, quantile(0.05, freedom) * error, error, min(one.count, two.count))
