"""Pictures in parts: what comes out is what the whole gives, and how many threads there are changes no bit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from tests.training.test_inference import state_of
from training.rl.networks import CNN, batch_shards
from training.rl.networks.torch_network import TorchNetwork
from training.rl.spaces import Spaces

SPACES = Spaces((4, 84, 84), (6,))


def tensors_of(network, count):
    state = state_of(network, SPACES, 3)
    parameters = {name: torch.tensor(array).requires_grad_() for name, array in state.parameters.items()}
    pictures = np.random.default_rng(0).integers(0, 256, (count, 4, 84, 84)).astype(np.uint8)
    return parameters, torch.from_numpy(pictures)


def gradients_of(network, parameters, pictures):
    outputs, values = TorchNetwork(network, SPACES).policy_and_value(parameters, pictures)
    loss = (torch.log_softmax(outputs, dim=1)[:, 0] * values).mean() + (values**2).mean()
    return outputs, values, torch.autograd.grad(loss, list(parameters.values()))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("count", [65, 150])
def test_parts_give_what_the_whole_gives(monkeypatch, shared, count):
    network = CNN(hidden=(32,), shared=shared)
    parameters, pictures = tensors_of(network, count)
    found = gradients_of(network, parameters, pictures)
    monkeypatch.setattr(batch_shards, "PART", 1000)
    expected = gradients_of(network, parameters, pictures)
    for ours, theirs in zip((*found[:2], *found[2]), (*expected[:2], *expected[2]), strict=True):
        # Sums over thousands of places in another order: equal as far as float32 goes, beside the largest of them.
        assert (ours - theirs).abs().max() <= 1e-4 * theirs.abs().max()


def test_one_thread_and_three_give_the_same_bits(monkeypatch):
    network = CNN(hidden=(32,))
    parameters, pictures = tensors_of(network, 200)
    answers = []
    for count in (1, 3):
        with ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            monkeypatch.setattr(batch_shards, "_threads", lambda pool=pool: pool)
            outputs, values, gradients = gradients_of(network, parameters, pictures)
            answers.append([outputs, values, *gradients])
    assert all(torch.equal(one, three) for one, three in zip(*answers, strict=True))


def test_without_gradients_no_graph_is_kept():
    network = CNN(hidden=(32,))
    parameters, pictures = tensors_of(network, 130)
    with torch.no_grad():
        outputs = TorchNetwork(network, SPACES).policy(parameters, pictures)
        values = TorchNetwork(network, SPACES).value(parameters, pictures)
    assert not outputs.requires_grad
    both = TorchNetwork(network, SPACES).policy_and_value(parameters, pictures)
    assert torch.equal(outputs, both[0].detach())
    assert torch.equal(values, both[1].detach())


def test_what_goes_wrong_in_a_part_is_raised():
    network = CNN(hidden=(32,))
    parameters, pictures = tensors_of(network, 130)
    del parameters["policy.0.bias"]
    with pytest.raises(KeyError, match=r"policy\.0\.bias"):
        TorchNetwork(network, SPACES).policy_and_value(parameters, pictures)
