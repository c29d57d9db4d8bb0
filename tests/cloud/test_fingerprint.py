"""What a run was made with names the GPU that it learned on, and none where there is none."""

from pathlib import Path

from cloud.fingerprint import fingerprint
from training.engine.torch_loading import gpu_name, has_gpu


def test_the_gpu_is_named_where_there_is_one(tmp_path: Path) -> None:
    found = fingerprint(tmp_path)
    assert found.get("gpu", "") == gpu_name()
    assert ("gpu" in found) == has_gpu()
