"""Measurements: the work of calls, the money of a job, updates and rounds.

All are frozen pydantic models. Units are in the names; money is a whole number of picodollars.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Usage(Message):
    """The work of a call, from which its time and price can be computed again, and what the provider measured.

    `macs` are the multiplications of one forward pass of one sample: of the policy for rollouts and evaluations, of
    policy and critic for updates. `pictures` says whether such a sample is one. `hessian_products` are of as many
    samples each as a minibatch had. `provisioned`: it ran on warm capacity that is paid for separately. `detours`:
    payloads too large for a request, which went by storage. Of a rollout's `run_s`, `environment_s` is the
    environments' steps and `inference_s` the policy; the rest is reading weights and states and packing the samples.
    """

    env_steps: int = 0
    inferences: int = 0
    episodes: int = 0
    minibatches: int = 0
    samples: int = 0
    macs: int = 0
    pictures: bool = False
    hessian_products: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    cold_start: bool = False
    provisioned: bool = False
    detours: int = 0
    startup_s: float = 0.0
    run_s: float = 0.0
    environment_s: float = 0.0
    inference_s: float = 0.0
    transfer_s: float = 0.0
    billed_s: float | None = None
    memory_mb: int = 0


class Spend(Message):
    """The job's money when its ledger was last read. None where the platform is not metered."""

    spent_picodollars: int
    reserved_picodollars: int
    limit_picodollars: int


class UpdateReport(Message):
    """The learner's measurements in one update, means over its gradient steps.

    Norms are those before clipping: of the whole gradient, and of the policy's and the critic's parts. Layers that both
    share count as the policy's. Updates from before the parts were measured do not have them.
    """

    policy_loss: float
    value_loss: float
    entropy: float
    approximate_kl: float
    clip_fraction: float
    explained_variance: float
    gradient_norm: float
    policy_gradient_norm: float | None = None
    critic_gradient_norm: float | None = None
    learning_rate: float
    device: str = "cpu"


class CurvatureReport(Message):
    """The curvature of the policy's objective: extreme eigenvalues of its Hessian, and R = −λ_max / λ_min.

    `note` says which value is used instead where the formula is undefined; `error` bounds how far the eigenvalues are
    off.
    """

    largest: float | None
    smallest: float | None
    ratio: float | None
    note: str = ""
    error: float | None = None
    products: int
    samples: int


class NoiseScaleReport(Message):
    """The gradient noise scale over `slices` actors' samples; None with a note where it is undefined."""

    scale: float | None
    note: str = ""
    slices: int


class RoundReport(Message):
    """One round: its plan, its results, its time and its cost."""

    round_no: int
    version: int
    actors: int
    plan_reason: str
    env_steps: int
    total_env_steps: int
    episodes: int
    episode_return_mean: float | None
    episode_length_mean: float | None
    update: UpdateReport
    curvature: CurvatureReport | None = None
    noise_scale: NoiseScaleReport | None = None
    policy_shift: float | None = None
    staleness_mean: float = 0.0
    dropped_trajectories: int = 0
    started_s: float
    collect_s: float
    update_s: float
    total_s: float
    cold_starts: int
    failed_calls: int
    retried_calls: int
    usage: Usage
    learner_usage: Usage
    cost_picodollars: int
    spend: Spend | None = None
