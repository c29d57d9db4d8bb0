from typing import get_args

from cloud.platforms.kinds import CLOUD_OF, COMPUTE_HERE, PlatformKind
from cloud.platforms.options import PlatformOptions


def test_the_kinds_are_those_of_the_options() -> None:
    kinds = [options.model_fields["kind"].default for options in get_args(PlatformOptions)]
    assert kinds == list(PlatformKind)
    assert not set(COMPUTE_HERE) & set(CLOUD_OF)
