"""An instance's birth mark."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from vk_provider_runpod.stamp import (
    KEYS,
    MAX_NAME,
    Mark,
    instance_name,
    name_prefix,
    read_mark,
    stamp_env,
)

from vk_provider.testing.builders import make_stamp


def test_what_is_stamped_is_read_again(mark: Mark) -> None:
    """From the env alone."""
    assert read_mark({"env": stamp_env(mark.stamp, "main")}) == mark


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", [None, "", 7])
def test_a_mark_that_lacks_a_part_is_none(mark: Mark, key: str, value: Any) -> None:
    """Half an owner is no owner."""
    env: dict[str, Any] = {**stamp_env(mark.stamp, "main"), key: value}

    assert read_mark({"env": env}) is None


@pytest.mark.parametrize("env", [None, [], "x"])
def test_an_unreadable_env_is_no_mark(env: Any) -> None:
    """Nor an exception."""
    assert read_mark({"env": env}) is None


@pytest.mark.parametrize("name", ["a", "web-6d4c-x7", "x" * 253, "with.dots.and-", "-"])
def test_names_are_short_and_plain(name: str) -> None:
    """60 characters are known to work."""
    found = instance_name(make_stamp(name))

    assert len(found) <= MAX_NAME
    assert re.fullmatch(r"vk-[0-9a-f]{8}-[a-z0-9-]*-[0-9a-f]{20}", found)
    assert found.startswith(name_prefix(make_stamp().cluster_id))


def test_names_tell_cluster_node_and_uid_apart() -> None:
    """Two pods of one name must never meet under it."""
    base = make_stamp()
    others = [
        make_stamp(cluster_id="cluster-2"),
        make_stamp(node_name="node-2"),
        make_stamp("app-2"),
    ]

    assert len({instance_name(each) for each in (base, *others)}) == 4


def test_the_test_pod_is_ours(backend_pod: Callable[..., dict[str, Any]], mark: Mark) -> None:
    """As the other tests take for granted."""
    assert read_mark(backend_pod()) == mark
