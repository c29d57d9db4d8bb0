"""What the options of every platform have in common."""

from __future__ import annotations

from collections.abc import Sequence

from training.base_model import FrozenModel


class PlatformModel(FrozenModel):
    """A job's options on one platform."""

    def memory_sizes_mb(self, requested_mb: int) -> Sequence[int]:
        """Return the sizes that an actor's memory can have here in one run, smallest first. Where nothing else was set
        up, or where memory is not bought by the call, it is the size that the job asks for.
        """
        return (requested_mb,)
