from typing import get_args

from cloud.platforms.options import CLOUD_OF, COMPUTE_HERE, PLATFORMS, PlatformOptions

STORED = ["local", "simulated", "aws_lambda", "azure_container", "hosts", "ray"]


def test_the_kinds_are_those_that_specs_store() -> None:
    assert list(PLATFORMS) == STORED
    assert list(PLATFORMS.values()) == list(get_args(PlatformOptions))
    assert CLOUD_OF == {"aws_lambda": "aws", "azure_container": "azure"}
    assert COMPUTE_HERE == ("local", "simulated")
    assert [kind for kind, options in PLATFORMS.items() if options.machines_stay] == ["local", "hosts", "ray"]
