"""Ask for parameter sets, tell the responses, and get indices: for models that run outside pleach."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._indices import Floats, Indices
from ._model import Method, Sampler, analyze, sample
from ._problem import Problem, problem_of
from ._program import PleachError

#: Settings of :func:`sample` and of :func:`analyze`, beside ``seed``.
_DRAWN = ("trajectories", "samples", "levels", "candidates", "second_order", "sampler", "harmonics")
_ANALYZED = ("levels", "second_order", "estimator", "harmonics", "slices", "resamples", "response")
#: Indices with the intervals that end a loop.
_PRECISE = {
    "moat": ("mu_star",),
    "vbd": ("S1", "ST"),
    "correlation": ("pearson", "spearman", "pcc", "prcc"),
}


class Loop:
    """A sample that is evaluated elsewhere, and grows until its indices are precise::

        loop = Loop(problem, method="vbd", samples=32, ci_width=0.1, max_evaluations=4000)
        while not loop.done:
            X = loop.ask()
            loop.tell([model(x) for x in X])
        print(loop.indices())

    Without ``ci_width``, the sample has one round. With it, each round adds ``samples`` (or ``trajectories``) of the
    first round, until the widest 95 % interval of mu_star (moat), of S1 and ST (vbd) or of the correlations is at most
    ``ci_width`` wide, or the next round would exceed ``max_evaluations``. This is ``until`` of a study file.

    ``settings`` are those of :func:`sample` and :func:`analyze`. The sampler of a growing sample must keep its first
    rows: ``saltelli`` and ``morris``, which are the defaults of vbd and moat, ``sobol``, ``halton`` and ``mc``.

    The parameter sets depend on the arguments alone. To continue in another process, create the loop with the same
    arguments and pass the stored ``Y`` and ``X`` to :meth:`tell`.

    Raises :class:`ValueError` for a wrong problem or setting and :class:`PleachError` for settings that pleach refuses.
    """

    def __init__(
        self,
        problem: Problem | Mapping[str, Any],
        *,
        method: Method = "vbd",
        samples: int | None = None,
        trajectories: int | None = None,
        ci_width: float | None = None,
        max_evaluations: int | None = None,
        sampler: Sampler | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        self.problem = problem_of(problem)
        self.method: Method = method
        self._size = "trajectories" if method == "moat" else "samples"
        self._step = trajectories if method == "moat" else samples
        if (samples if method == "moat" else trajectories) is not None:
            other = "samples" if method == "moat" else "trajectories"
            raise ValueError(f"{other} is not allowed with method {method}; {self._size} is allowed")
        if self._step is None:
            raise ValueError(f"{self._size}: missing; the size of a round is needed")
        if ci_width is not None:
            if method not in _PRECISE:
                allowed = ", ".join(_PRECISE)
                raise ValueError(f"ci_width is not allowed with method {method}; methods that grow are {allowed}")
            if not ci_width > 0:
                raise ValueError(f"ci_width {ci_width} is not allowed; a number above 0 is allowed")
            if max_evaluations is None:
                raise ValueError("max_evaluations: missing; ci_width needs it")
        elif max_evaluations is not None:
            raise ValueError("ci_width: missing; max_evaluations needs it")
        for name in settings:
            if name not in (*_DRAWN, *_ANALYZED):
                allowed = ", ".join(dict.fromkeys([*_DRAWN, *_ANALYZED]))
                raise ValueError(f"{name!r} is not a setting of a loop; allowed are {allowed}")
        if sampler is None and ci_width is not None and method == "correlation":
            sampler = "sobol"
        self.ci_width, self.max_evaluations, self.seed = ci_width, max_evaluations, seed
        self._settings = {**settings, "sampler": sampler}
        #: Widest interval after each complete round, ``nan`` without intervals.
        self.widths: list[float] = []
        self._rounds = 1
        #: Rows without a response; those that `ask` has not returned, and those that it has, in their order.
        self._open: set[int] = set()
        self._fresh: deque[int] = deque()
        self._asked: deque[int] = deque()
        first = self._draw(1)
        if max_evaluations is not None and len(first) > max_evaluations:
            needed = f"{len(first)} or more, the first round, is allowed"
            raise ValueError(f"max_evaluations {max_evaluations} is not allowed; {needed}")
        self._x: Floats = np.empty((0, len(self.problem)))
        self._y: Floats = np.empty(0)
        self._begin(first)

    @property
    def done(self) -> bool:
        """Whether no parameter set is left: all responses are known, and the sample grows no more."""
        return not self._open

    @property
    def converged(self) -> bool:
        """Whether the widest interval is at most ``ci_width`` wide. ``False`` without ``ci_width``."""
        return self.ci_width is not None and bool(self.widths) and self.widths[-1] <= self.ci_width

    @property
    def X(self) -> Floats:
        """Sample of all rounds so far, shape (evaluations, parameters)."""
        return self._x.copy()

    @property
    def Y(self) -> Floats:
        """Responses of :attr:`X`, shape (evaluations,). ``nan`` where the response is not known or failed."""
        return self._y.copy()

    def ask(self, count: int | None = None) -> Floats:
        """Returns parameter sets of this round, shape (sets, parameters): ``count``, or fewer at its end.

        Without ``count``, returns all that have not been returned before. Sets that were returned and have no response
        are not returned again; :meth:`ask_again` returns them. The array is empty if all sets of the round were
        returned: :meth:`tell` their responses, and ask again.
        """
        if count is not None and count < 1:
            raise ValueError(f"count {count} is not allowed; 1 or more is allowed")
        rows = [self._fresh.popleft() for _ in range(min(count or len(self._fresh), len(self._fresh)))]
        self._asked.extend(rows)
        return self._x[rows]

    def ask_again(self) -> Floats:
        """Returns the parameter sets that :meth:`ask` returned and that have no response, in their order."""
        return self._x[list(self._asked)]

    def tell(self, Y: ArrayLike, X: ArrayLike | None = None) -> None:
        """Takes responses, shape (sets,): of the sets in the order in which they were asked for, or of the rows of ``X``.

        ``X`` may be in any order, and may hold sets of the sample that were not asked for yet. A response of ``nan`` is
        a failed evaluation. The last response of a round ends it.

        Raises :class:`ValueError` if there are more responses than sets, or if a row of ``X`` is no set of the sample
        without a response. Nothing is taken then.
        """
        responses = np.atleast_1d(np.asarray(Y, dtype=np.float64))
        if responses.ndim != 1:
            raise ValueError(f"Y has shape {responses.shape}; (sets,) is needed, one response per parameter set")
        if X is None:
            if len(responses) > len(self._asked):
                asked = f"{len(self._asked)} parameter sets wait for a response"
                raise ValueError(f"Y has {len(responses)} responses; {asked}, in the order of ask()")
            self._take([self._asked[place] for place in range(len(responses))], responses)
            return
        rows = np.atleast_2d(np.asarray(X, dtype=np.float64))
        if rows.shape != (len(responses), len(self.problem)):
            needed = (len(responses), len(self.problem))
            raise ValueError(f"X has shape {rows.shape}; {needed} is needed, one row per response")
        self._tell_rows(rows, responses)

    def indices(self) -> Indices:
        """Returns the indices of the sample so far. Unknown responses count as failed evaluations.

        Raises :class:`PleachError` if there are too few responses.
        """
        return self._analyze(self._x, self._y)

    def _tell_rows(self, rows: Floats, responses: Floats) -> None:
        # Stored responses may be of several rounds: each round that they complete begins the next one.
        before = (self._x, self._y, set(self._open), deque(self._fresh), deque(self._asked), self._rounds, list(self.widths))
        left: list[int] = list(range(len(rows)))
        while left:
            known: dict[bytes, deque[int]] = {}
            for place in sorted(self._open):
                known.setdefault(_key(self._x[place]), deque()).append(place)
            found: list[tuple[int, int]] = [(place, known[key].popleft()) for place in left if known.get(key := _key(rows[place]))]
            if not found:
                self._x, self._y, self._open, self._fresh, self._asked, self._rounds, self.widths = before
                row = left[0]
                raise ValueError(f"X[{row}] {rows[row].tolist()}: no parameter set of this sample without a response")
            matched = {place for place, _ in found}
            left = [place for place in left if place not in matched]
            self._take([at for _, at in found], responses[[place for place, _ in found]])

    def _take(self, places: list[int], responses: Floats) -> None:
        self._y = self._y.copy()
        self._y[places] = responses
        taken = set(places)
        self._open -= taken
        self._asked = deque(place for place in self._asked if place not in taken)
        self._fresh = deque(place for place in self._fresh if place not in taken)
        if not self._open:
            self._end_round()

    def _end_round(self) -> None:
        if self.ci_width is None or self.max_evaluations is None:
            return
        try:
            widest = _widest(self._analyze(self._x, self._y), _PRECISE[self.method])
        except PleachError:
            if np.isfinite(self._y).sum() > 1:
                raise
            widest = float("nan")
        self.widths.append(widest)
        if self.converged:
            return
        grown = self._draw(self._rounds + 1)
        if len(grown) > self.max_evaluations:
            return
        if not np.array_equal(grown[: len(self._x)], self._x):
            named = self._settings["sampler"] or "the default sampler"
            allowed = "saltelli, morris, sobol, halton and mc without candidates"
            raise ValueError(f"sampler {named}: a larger sample does not keep its rows; samplers that grow are {allowed}")
        self._rounds += 1
        self._begin(grown)

    def _begin(self, grown: Floats) -> None:
        old = len(self._x)
        self._x = grown
        self._y = np.concatenate([self._y, np.full(len(grown) - old, np.nan)])
        self._open = set(range(old, len(grown)))
        self._fresh = deque(range(old, len(grown)))
        self._asked = deque()

    def _draw(self, rounds: int) -> Floats:
        assert self._step is not None
        settings: dict[str, Any] = {name: self._settings[name] for name in _DRAWN if name in self._settings}
        settings[self._size] = rounds * self._step
        return sample(self.problem, method=self.method, seed=self.seed, **settings)

    def _analyze(self, X: Floats, Y: Floats) -> Indices:
        settings: dict[str, Any] = {name: self._settings[name] for name in _ANALYZED if name in self._settings}
        return analyze(self.problem, X, Y, method=self.method, seed=self.seed, **settings)

    def __repr__(self) -> str:
        state = "done" if self.done else f"{len(self._open)} without a response"
        return f"Loop({self.method}, round {self._rounds}, {len(self._x)} evaluations, {state})"


def _key(row: Floats) -> bytes:
    # 0.0 and -0.0 are one value.
    return bytes((row + 0.0).tobytes())


def _widest(indices: Indices, names: tuple[str, ...]) -> float:
    return float(np.max([2 * indices[f"{name}_conf"] for name in names]))
