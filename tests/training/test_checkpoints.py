"""Checkpoints: whole or refused, never half; the last few kept."""

import pytest

from tests.training.specs import tiny
from training.engine.checkpoints import CheckpointError, FileCheckpointStore, Progress


def test_what_was_saved_is_loaded_and_only_the_last_stay(tmp_path):
    store = FileCheckpointStore(tmp_path, keep=2)
    refs = [store.save(round_no, bytes([round_no]) * 10) for round_no in (1, 2, 3)]
    assert store.names() == [refs[1].name, refs[2].name]
    assert store.load(refs[2].name) == b"\x03" * 10


def test_the_best_is_kept_apart_and_alone(tmp_path):
    store = FileCheckpointStore(tmp_path, keep=1)
    assert store.best() is None
    for round_no, best in [(1, True), (2, False), (3, False), (4, True), (5, False)]:
        store.save(round_no, bytes([round_no]), best=best)
    assert store.names() == ["round-00000005.checkpoint"]
    assert store.load(store.best()) == b"\x04"


@pytest.mark.parametrize("position", [0, 30, 60])
def test_a_damaged_checkpoint_is_refused_in_one_sentence(tmp_path, position):
    store = FileCheckpointStore(tmp_path)
    ref = store.save(7, bytes(100))
    path = tmp_path / ref.name
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match=rf"{ref.name} is (damaged|not a checkpoint)"):
        store.load(ref.name)


def test_missing_foreign_and_unfitting_checkpoints(tmp_path):
    store = FileCheckpointStore(tmp_path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        store.load("round-00000001.checkpoint")
    with pytest.raises(CheckpointError, match="not the name"):
        store.load("../../etc/passwd")
    data = Progress(learner=b"x", weights=b"y").encode(tiny())
    assert Progress.decode(data, tiny()).learner == b"x"
    with pytest.raises(CheckpointError, match="another environment"):
        Progress.decode(data, tiny("Acrobot-v1"))
    with pytest.raises(CheckpointError, match="cannot be read"):
        Progress.decode(b"junk", tiny())


def test_a_run_of_very_many_evaluations_can_go_on():
    means = tuple(float(number) for number in range(200_000))
    data = Progress(learner=b"x", weights=b"y", evaluation_means=means).encode(tiny())
    assert Progress.decode(data, tiny()).evaluation_means == means
