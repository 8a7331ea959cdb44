"""Parameter sensitivity studies with the program pleach.

- :class:`Problem`, :class:`Parameter`: parameters with their ranges, from and to SALib.
- :func:`sample`, :func:`analyze`, :func:`evaluate`: sensitivity indices of a model of your own.
- :class:`Loop`: the same for a model that runs elsewhere: ask for parameter sets, tell the responses.
- :class:`Study`: a study of an image-analysis workflow. :class:`Results`: its results.
- :class:`Submission`: a study on the manager of a cluster.
- :class:`Indices`: sensitivity indices under SALib's names.
- :func:`operation`: declares a function as an operation of a workflow.

The program is that of the environment variable ``PLEACH``, else that of the wheel, else ``pleach`` in ``PATH``.
"""

from ._indices import Indices
from ._loop import Loop
from ._model import analyze, evaluate, sample
from ._operation import operation
from ._problem import Parameter, Problem
from ._program import PleachError, PleachWarning, find_program
from ._results import Results
from ._study import Study
from ._submission import Submission

__version__ = "0.1.0"

__all__ = [
    "Indices",
    "Loop",
    "Parameter",
    "PleachError",
    "PleachWarning",
    "Problem",
    "Results",
    "Study",
    "Submission",
    "analyze",
    "evaluate",
    "find_program",
    "operation",
    "sample",
]
