"""Parameter sensitivity studies with the program pleach.

- :class:`Problem`, :class:`Parameter`: parameters with their ranges, from and to SALib.
- :func:`sample`, :func:`analyze`, :func:`evaluate`: sensitivity indices of a model of your own.
- :class:`Study`: a study of an image-analysis workflow. :class:`Results`: its results.
- :class:`Indices`: sensitivity indices under SALib's names.
- :func:`operation`: declares a function as an operation of a workflow.

The program is found by the environment variable ``PLEACH``, else as ``pleach`` in ``PATH``.
"""

from ._indices import Indices
from ._model import analyze, evaluate, sample
from ._operation import operation
from ._problem import Parameter, Problem
from ._program import PleachError, PleachWarning, find_program
from ._results import Results
from ._study import Study

__version__ = "0.1.0"

__all__ = [
    "Indices",
    "Parameter",
    "PleachError",
    "PleachWarning",
    "Problem",
    "Results",
    "Study",
    "analyze",
    "evaluate",
    "find_program",
    "operation",
    "sample",
]
