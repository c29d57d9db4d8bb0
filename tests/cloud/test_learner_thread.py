"""The thread in which a job's own process learns."""

import subprocess
import sys

from tests.servers import ROOT

_START = """
import sys
from cloud.workers.learner_thread import LearnerThread
learner = LearnerThread(print)
learner.close()
print("torch" in sys.modules)
"""


def test_a_learner_starts_without_torch() -> None:
    """Loading it takes longer than all else at a job's start, and most jobs never need it."""
    done = subprocess.run(
        [sys.executable, "-c", _START], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "False", done.stderr
