"""Models that learn a class from a row of features, in numpy alone, one file a kind: fields are the form, methods the
mathematics. `optimisers` move their parameters, `metrics` judge them, `export` and `loader` take them away.
"""

from typing import Annotated

from pydantic import Field

from training.data.manifest import DataShape
from training.supervised.models.click_through import ClickThrough
from training.supervised.models.lenet import LeNet
from training.supervised.models.logistic import LogisticRegression

AnyModel = Annotated[LogisticRegression | ClickThrough | LeNet, Field(discriminator="kind")]


def simplest_model(shape: DataShape) -> LogisticRegression | ClickThrough:
    """Return the simplest model that can learn such rows."""
    return LogisticRegression() if shape.kind == "dense" else ClickThrough()
