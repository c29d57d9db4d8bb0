"""Exports the policy as an ONNX graph: deterministic, with its normaliser inside and without the learner.

The graph is written node by node as `training.rl.networks.inference` computes, so exporting needs neither torch nor a
trace. Input `observation`: float32 [batch, size], or uint8 [batch, channels, rows, columns] for pictures. Output
`action`: float32 [batch, size], the mean clipped to the action's bounds; int64 [batch] for one discrete action,
[batch, k] for several. What else a loader needs (the environment's id, the frames in a stack) is in the model's
metadata.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from training.artifacts.onnx_graph import OnnxGraph
from training.rl.environments.model import EnvironmentSpec
from training.rl.learner import LearnerState
from training.rl.networks import Network
from training.rl.networks.inference import OBSERVATION_CLIP


def export_onnx(
    state: LearnerState, network: Network, *, environment: EnvironmentSpec | None = None, about: str = ""
) -> bytes:
    """Return the deterministic policy of `state` as the bytes of a checked ONNX model."""
    graph = _Graph()
    seen = graph.normalise(state) if not state.spaces.pictures else graph.scaled_pictures()
    outputs = graph.layers(seen, state, network)
    if state.spaces.discrete:
        graph.choices(outputs, state.spaces.action_counts)
        several = len(state.spaces.action_counts)
        kind, shape = TensorProto.INT64, [several] if several > 1 else []
    else:
        graph.clipped_means(outputs, state.spaces.action_low, state.spaces.action_high, network.log_std)
        kind, shape = TensorProto.FLOAT, [len(state.spaces.action_low)]
    input_kind = TensorProto.UINT8 if state.spaces.pictures else TensorProto.FLOAT
    observation: list[str | int | None] = ["batch", *state.spaces.observation_shape]
    facts = {}
    if environment is not None:
        dtype = "uint8" if state.spaces.pictures else "float32"
        facts = {
            "environment": environment.id,
            "frame_stack": str(environment.frame_stack),
            "observation_dtype": dtype,
        }
    return graph.model(
        "policy",
        [helper.make_tensor_value_info("observation", input_kind, observation)],
        [helper.make_tensor_value_info("action", kind, ["batch", *shape])],
        version=state.version,
        about=about,
        facts=facts,
    )


class _Graph(OnnxGraph):
    def normalise(self, state: LearnerState) -> str:
        """Return (observation - mean) · scale, clipped, in float32; the observation itself if the policy has no
        normaliser.
        """
        mean, scale = state.normaliser()
        if mean is None or scale is None:
            return "observation"
        shifted = self.node("Sub", "observation", self.constant("observation_mean", mean))
        scaled = self.node("Mul", shifted, self.constant("observation_scale", scale))
        low = self.constant("observation_low", np.float32(-OBSERVATION_CLIP))
        high = self.constant("observation_high", np.float32(OBSERVATION_CLIP))
        return self.node("Clip", scaled, low, high)

    def scaled_pictures(self) -> str:
        numbers = self.node("Cast", "observation", to=TensorProto.FLOAT)
        return self.node("Mul", numbers, self.constant("picture_scale", np.float32(1.0 / 255.0)))

    def layers(self, x: str, state: LearnerState, network: Network) -> str:
        """Add the policy's layers: activations between them, none after the last."""
        for named in network.layout(state.spaces).actor:
            constants = [self.constant(name, state.parameters[name]) for name in named.parameters]
            x = named.layer.in_onnx(self, x, *constants)
            if named.activated:
                x = self.node("Relu" if network.activation == "relu" else "Tanh", x)
        return x

    def choices(self, logits: str, counts: tuple[int, ...]) -> None:
        """Add the likeliest choice of each discrete action."""
        if len(counts) == 1:
            self.node("ArgMax", logits, gives="action", axis=1, keepdims=0)
            return
        ends = np.cumsum(counts)
        parts = [
            self.node("ArgMax", self._columns(logits, int(end) - count, int(end)), axis=1, keepdims=1)
            for count, end in zip(counts, ends, strict=True)
        ]
        self.node("Concat", *parts, gives="action", axis=1)

    def clipped_means(
        self, outputs: str, low: tuple[float, ...], high: tuple[float, ...], log_std: str
    ) -> None:
        """Add the means, without the deviations that may follow them, clipped to the environment's bounds."""
        means = self._columns(outputs, 0, len(low)) if log_std == "state" else outputs
        least = self.constant("action_low", np.array(low, dtype=np.float32))
        most = self.constant("action_high", np.array(high, dtype=np.float32))
        self.node("Min", self.node("Max", means, least), most, gives="action")

    def _columns(self, x: str, begin: int, end: int) -> str:
        bounds = (("begin", begin), ("end", end), ("axis", 1))
        names = [self.constant(f"{x}.{begin}.{word}", np.array([at], dtype=np.int64)) for word, at in bounds]
        return self.node("Slice", x, *names)
