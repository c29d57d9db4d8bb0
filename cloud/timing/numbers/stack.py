"""The speed of the software: the same work takes an RLlib-like actor longer than Starling's, on any cloud.

A stack is one TOML file in `cloud/timing/stacks` or in the installation's data folder. Its times apply to one whole
core of the machine where they were measured; a profile's `core_ratio` says how fast the cloud's cores are compared
with it.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from cloud.timing.numbers.files import NumberFiles
from cloud.timing.numbers.quantity import Quantity, read_toml
from training.base_model import FrozenModel

OURS = "starling-stack"
"""The software as it is now: new jobs, forecasts and profiles begin with it. Other stacks stay for older runs."""
STACKS = Path(__file__).resolve().parent.parent / "stacks"
_NOTHING = Quantity(value=0.0, low=0.0, high=0.0, source="not known", kind="assumed")


class Speed(FrozenModel):
    """The time of work with a network: of one pass, of each sample in it, and of each million multiplications.

    What a sample takes beside its multiplications (activations, the loss, copies) is most of a small network's time.
    """

    fixed_us: Quantity
    per_sample_us: Quantity = _NOTHING
    us_per_million_macs: Quantity


class Inference(FrozenModel):
    """One observation through the policy on a core, by kind of network."""

    mlp: Speed
    cnn: Speed


class UpdateNumbers(FrozenModel):
    """Learning. `fixed` is per minibatch; multiplications are those of a forward pass times samples.

    `call_ms` is what an update call takes beside its minibatches, and `us_per_megabyte` what it takes to read its
    data. `gradient_ms` and `apply_ms`: the same of calls of learners that compute gradients; None: as an update.
    `apply_us_per_megabyte`: what it takes to read and join a state and gradients; None: as reading samples, which are
    valued as well. `mlp_where_quicker`: with a GPU the software still learns MLPs on a core where that is quicker, and
    takes Hessian products of them there.
    """

    call_ms: Quantity
    us_per_megabyte: Quantity
    gradient_ms: Quantity | None = Field(None, exclude_if=lambda time: time is None)
    apply_ms: Quantity | None = Field(None, exclude_if=lambda time: time is None)
    apply_us_per_megabyte: Quantity | None = Field(None, exclude_if=lambda time: time is None)
    mlp: Speed
    cnn: Speed
    gpu_mlp: Speed
    gpu_cnn: Speed
    mlp_where_quicker: bool = Field(False, exclude_if=lambda chosen: not chosen)


class Stack(FrozenModel):
    """`further_core_share`: what each further core of an actor adds to the speed of MuJoCo's steps, as a share of the
    first core's; None where copies are not stepped in threads. `learning_parallel_share`: how much of what an actor
    learns is shared out over its cores; None where it learns on one.
    """

    title: str = Field(min_length=3)
    words: str = Field(min_length=10)
    import_s: Quantity
    first_environment_s: Quantity
    rebuild_s: Quantity
    call_ms: Quantity
    step_us: Quantity
    environment_step_us: dict[str, Quantity]
    environment_step_fallback_us: Quantity
    further_core_share: Quantity | None = Field(None, exclude_if=lambda share: share is None)
    learning_parallel_share: Quantity | None = Field(None, exclude_if=lambda share: share is None)
    inference: Inference
    update: UpdateNumbers
    hessian_product_per_gradient: Quantity
    codec_us_per_megabyte: Quantity
    coordinator_ms: Quantity


def read(path: Path) -> Stack:
    """Return a stack from any file."""
    return read_toml(path, Stack)


FILES = NumberFiles(STACKS, "stack", "import_s", read)
names, load = FILES.names, FILES.load
