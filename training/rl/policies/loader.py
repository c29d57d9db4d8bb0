"""The files beside an exported policy, with which it runs without Starling: a short script that plays it.

The script reads the environment's name from the model itself, so it is the same for all policies. Atari policies need
a second file: Starling's preprocessing differs from Gymnasium's, and the policy only knows pictures made that way.
"""

from __future__ import annotations

import inspect

from training.rl.environments import atari
from training.rl.policies.export import export_onnx
from training.rl.policies.trained import TrainedPolicy

POLICY, CARD, SCRIPT, ATARI = "policy.onnx", "README.md", "play.py", "atari.py"

_TEMPLATE = '''"""Plays policy.onnx and prints the mean return: python play.py [EPISODES]. Needs: see README.md."""
import pathlib, sys
import {imports}

policy = onnxruntime.InferenceSession(pathlib.Path(__file__).with_name("policy.onnx"))
facts, returns = policy.get_modelmeta().custom_metadata_map, []
environment = {environment}
for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
    (seen, _), over, total = environment.reset(seed=seed), False, 0.0
    while not over:
        observation = numpy.asarray(seen, facts["observation_dtype"])[None]
        action = policy.run(["action"], {{"observation": observation}})[0][0]
        seen, reward, terminated, truncated, _ = environment.step(action)
        total, over = total + reward, terminated or truncated
    returns.append(total)
print(f"mean return {{numpy.mean(returns):.1f}} ± {{numpy.std(returns):.1f}} over {{len(returns)}} episodes")
'''

LOADER = _TEMPLATE.format(
    imports="gymnasium, numpy, onnxruntime", environment='gymnasium.make(facts["environment"])'
)
ATARI_LOADER = _TEMPLATE.format(
    imports="numpy, onnxruntime, atari",
    environment='atari.AtariEnvironment(atari.atari_game(facts["environment"]), int(facts["frame_stack"]))',
)


def package(trained: TrainedPolicy, card: str) -> dict[str, bytes]:
    """Return the files to download, by name: the policy, its card, the script, and what else the script needs."""
    spec = trained.spec
    about = f"Round {trained.progress.round_no} of {spec.environment.id} by {spec.algorithm.kind}."
    model = export_onnx(trained.learner, spec.network, environment=spec.environment, about=about)
    files = {POLICY: model, CARD: card.encode()}
    if is_atari(trained):
        return {**files, SCRIPT: ATARI_LOADER.encode(), ATARI: inspect.getsource(atari).encode()}
    return {**files, SCRIPT: LOADER.encode()}


def is_atari(trained: TrainedPolicy) -> bool:
    """Whether the policy plays a game with the preprocessing of `training.rl.environments.atari`."""
    return atari.atari_game(trained.spec.environment.id) is not None
