"""The values that travel: what they say about themselves."""

from dataclasses import replace

from vk_provider.pods.types import PodUID
from vk_provider.testing.builders import make_stamp


def test_a_stamp_without_a_pod_is_a_stray() -> None:
    """Such an instance is our cluster's, and nobody knows whose: it is never deleted by guess."""
    stamp = make_stamp()

    assert not stamp.is_stray
    assert replace(stamp, pod_uid=PodUID("")).is_stray
