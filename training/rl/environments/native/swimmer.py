"""Swimmer: sees neither its x nor its y."""

from __future__ import annotations

from training.rl.environments.native.runner import Runner


class Swimmer(Runner):
    hidden = 2
