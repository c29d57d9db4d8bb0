"""How to learn from what actors saw. One readable file an algorithm: fields are the form, methods the mathematics."""

from training.algorithms.ppo import PPO

AnyAlgorithm = PPO
