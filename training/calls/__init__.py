"""The kinds of calls there are. Begin with `kind.py`; each kind is a file here and a row of `KINDS`.

All lists of kinds are read from the table: bodies, checks of answers, times, bills, forecasts, charges and words.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny, ValidationError

from training.calls.apply import Apply
from training.calls.evaluate import Evaluate
from training.calls.gradient import Gradient
from training.calls.kind import AnyKind, CallRequest
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


def _of_its_kind(value: Any) -> Any:
    """Return a request as the model of its kind. Raises ValueError if it is none of ours."""
    if not isinstance(value, dict):
        return value
    kind = KINDS.get(str(value.get("kind")))
    if kind is None:
        raise ValueError(f"no kind of call is named {str(value.get('kind'))[:40]!r}")
    try:
        return kind.request.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


AnyRequest = Annotated[SerializeAsAny[CallRequest], BeforeValidator(_of_its_kind)]
