"""Is this the answer to that call? What comes from an actor is not trusted: it may be wrong, old or hostile."""

from __future__ import annotations

import hmac

from cloud.actor.wire import ActorAnswer, MalformedMessage, read_answer
from training.calls import KINDS
from training.calls.kind import BadAnswer
from training.engine.messages import Call
from training.functions.body import Result

_UNFORESEEN = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""An answer that a check does not foresee is refused: it must not end the run of all others."""


def answer_to(call: Call, run: str, data: bytes) -> tuple[ActorAnswer, Result | None]:
    """The checked answer, with a result if the call was done. Refusal says what is wrong with it."""
    answer = read_answer(data, limit_bytes=limit_bytes(call))
    if answer.status == "refused" and not answer.run:
        # The actor could not read what it was sent, so it cannot know whom it answers.
        return answer, None
    if not hmac.compare_digest(answer.run.encode(), run.encode()):
        raise MalformedMessage("run", "the answer belongs to another run")
    if answer.call_id != call.id:
        raise MalformedMessage("call", f"the answer is to another call, {answer.call_id[:80]!r}")
    if answer.status != "done":
        return answer, None
    return answer, result_of(call, answer)


def result_of(call: Call, answer: ActorAnswer) -> Result:
    """What a done call gave, if it is what `call` asks for."""
    version = call.weights.version if call.weights is not None else None
    if answer.version != version:
        raise MalformedMessage(
            "version", f"sampled with version {answer.version}; version {version} was sent"
        )
    result = Result(answer.payload, answer.slot_state, answer.work.usage())
    try:
        KINDS[call.kind].check(call, call.request, result)
    except BadAnswer as bad:
        raise MalformedMessage(bad.code, str(bad)) from None
    except _UNFORESEEN as error:
        raise MalformedMessage("shape", f"the answer cannot be checked ({type(error).__name__})") from error
    return result


def limit_bytes(call: Call) -> int:
    """The most that an answer to this call can unpack to."""
    return KINDS[call.kind].answer_limit_bytes(call, call.request)
