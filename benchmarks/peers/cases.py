"""What is trained, alike for everyone. Read in both environments, so it knows nothing but Python."""

from dataclasses import dataclass

ENVIRONMENTS = 8
DISCOUNT = 0.99
TRACE_DECAY = 0.95
HIDDEN = 64


@dataclass(frozen=True)
class Case:
    """One recipe of PPO: 8 environments of `steps` a round. `rounds` are measured, after some that are not."""

    name: str
    environment: str
    steps: int = 256
    epochs: int = 10
    minibatch: int = 256
    learning_rate: float = 3e-4
    clip: float = 0.2
    entropy: float = 0.0
    pictures: bool = False
    rounds: int = 12

    @property
    def steps_a_round(self) -> int:
        return ENVIRONMENTS * self.steps


CASES = {
    case.name: case
    for case in (
        Case("hopper", "Hopper-v5"),
        Case("hopper-64", "Hopper-v5", minibatch=64, rounds=8),
        Case("humanoid", "Humanoid-v5", rounds=8),
        Case(
            "space-invaders",
            "SpaceInvadersNoFrameskip-v4",
            steps=128,
            epochs=4,
            learning_rate=2.5e-4,
            clip=0.1,
            entropy=0.01,
            pictures=True,
            rounds=2,
        ),
    )
}
WARM_UP_ROUNDS = 2
