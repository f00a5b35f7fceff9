"""Who should get what next, and is it fair? Studies of scheduling policies on real and generated workloads.

>>> import evenhand as eh
>>> w = eh.generate(tasks=300, users=5, days=1)
>>> s = eh.study(w, policies=["fifo", "drf"], capacity=0.5)
>>> s.users["user"][:3] == w.users[:3]
True

`read` and `generate` give workloads, `study` replays them, `tune` tries a grid of settings; `allocate`, `audit`, `timeline`, `processes` and `price` are
the other verbs of the program `evenhand`, which the package contains: the same engine and the same results.
"""

from ._errors import EnvironmentFailure, EvenhandError, InputError, PolicyError
from ._live import LivePolicy
from ._native import Table, View, __version__
from ._study import Comparison, Study, study
from ._tune import Tuning, tune
from ._verbs import Audit, allocate, audit, price, processes, timeline
from ._workload import Workload, generate, read
from .compiled import CompiledPolicy

__all__ = [
    "Audit",
    "Comparison",
    "CompiledPolicy",
    "EnvironmentFailure",
    "EvenhandError",
    "InputError",
    "LivePolicy",
    "PolicyError",
    "Study",
    "Table",
    "Tuning",
    "View",
    "Workload",
    "__version__",
    "allocate",
    "audit",
    "generate",
    "price",
    "processes",
    "read",
    "study",
    "timeline",
    "tune",
]
