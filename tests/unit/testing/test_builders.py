"""The smallest valid objects."""

from __future__ import annotations

import pytest

from vk_provider.pods.types import InstancePhase, Running
from vk_provider.testing.builders import (
    CLUSTER_ID,
    make_container,
    make_observation,
    make_pod,
    make_resolved_pod,
    make_stamp,
    uid_of,
)


def test_the_same_name_has_the_same_uid() -> None:
    """And another namespace another one."""
    assert make_pod("a") == make_pod("a")
    assert make_pod("a")["metadata"]["uid"] == uid_of("a")
    assert uid_of("a") != uid_of("a", "team")


def test_fields_are_laid_over_the_default_ones() -> None:
    """Metadata, spec and status, each in its place."""
    pod = make_pod(
        metadata={"labels": {"a": "b"}}, status={"phase": "Failed"}, restartPolicy="Never"
    )

    assert pod["metadata"]["labels"] == {"a": "b"}
    assert pod["metadata"]["name"] == "app-1"
    assert pod["status"]["phase"] == "Failed"
    assert pod["spec"]["restartPolicy"] == "Never"
    assert make_container(image="x")["image"] == "x"


def test_a_resolved_pod_and_its_observation_fit() -> None:
    """They carry the same stamp."""
    pod, seen = make_resolved_pod("a"), make_observation("a")

    assert pod.stamp == seen.stamp == make_stamp("a")
    assert pod.stamp.cluster_id == CLUSTER_ID
    assert [type(each.state) for each in seen.containers] == [Running]
    assert make_observation("a", InstancePhase.STARTING).containers == ()


def test_a_pod_with_absent_references_says_what_to_pass() -> None:
    """A builder's mistake is found where it is made."""
    container = make_container(envFrom=[{"secretRef": {"name": "login"}}])

    with pytest.raises(LookupError, match='secret "login" not found'):
        make_resolved_pod(containers=[container])
