"""The kinds of calls there are. Begin with `kind.py`; each kind is a file here and a row of `KINDS`.

All lists of kinds are read from the table: checks of answers, times, bills, forecasts, charges and words. Bodies are in
`training.functions.run`.
"""

from __future__ import annotations

from training.calls.apply import Apply
from training.calls.evaluate import Evaluate
from training.calls.gradient import Gradient
from training.calls.kind import AnyKind
from training.calls.merge import Merge
from training.calls.rollout import Rollout
from training.calls.score import ScoreRows
from training.calls.sgd import Sgd
from training.calls.update import Update

KINDS: dict[str, AnyKind] = {
    kind.name: kind
    for kind in (
        Rollout(),
        Evaluate(),
        Update(),
        Gradient(),
        Apply(),
        Sgd(),
        Merge(),
        ScoreRows(),
    )
}
