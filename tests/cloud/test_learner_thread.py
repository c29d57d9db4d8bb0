"""The thread in which a job's own process learns."""

from rig.servers import printed_by

_START = """
import sys
from cloud.workers.learner_thread import LearnerThread
learner = LearnerThread(print)
learner.close()
print("torch" in sys.modules)
"""


def test_a_learner_starts_without_torch() -> None:
    """Loading it takes longer than all else at a job's start, and most jobs never need it."""
    assert printed_by(_START) == "False"
