"""Whose an instance is can be selected by labels and read from annotations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from vk_provider_kubernetes import stamp as marks

from vk_provider.testing.builders import make_stamp


def pod_of(**metadata: object) -> dict[str, object]:
    """A remote pod with this metadata."""
    return {"metadata": metadata}


def test_a_stamp_is_read_as_it_was_written() -> None:
    """From the annotations alone."""
    stamp = make_stamp()

    assert marks.read(pod_of(annotations=marks.full(stamp))) == stamp


@pytest.mark.parametrize("missing", marks.KEYS)
def test_a_mark_that_lacks_a_part_is_none(missing: str) -> None:
    """It is not ours to delete."""
    annotations = marks.full(make_stamp())
    del annotations[missing]

    assert marks.read(pod_of(annotations=annotations)) is None


def test_labels_hold_what_a_list_selects_by() -> None:
    """Values that fit stay readable."""
    stamp = make_stamp()

    found = marks.labels(stamp)

    assert found[marks.CLUSTER] == "cluster-1"
    assert marks.selector("cluster-1") == f"{marks.CLUSTER}=cluster-1"
    assert set(found) == {marks.CLUSTER, marks.NODE, marks.POD_UID}


@pytest.mark.parametrize("value", ["x" * 64, "our cluster", "-edge", "ends-", "ü"])
def test_a_value_that_is_no_label_stands_there_as_its_hash(value: str) -> None:
    """The API server would refuse it."""
    found = marks.label_value(value)

    assert found.startswith("sha-")
    assert len(found) <= 63
    assert found == marks.label_value(value)


def test_names_are_stable_and_differ_by_owner() -> None:
    """Cluster and UID decide, never the name alone."""
    stamp = make_stamp("app-1")
    other = replace(stamp, cluster_id="cluster-2")

    assert marks.instance_name(stamp) == marks.instance_name(replace(stamp, node_name="node-2"))
    assert marks.instance_name(stamp) != marks.instance_name(other)
    assert marks.instance_name(stamp).startswith("app-1-")


@pytest.mark.parametrize("name", ["a" * 253, "web.0", "Ünder_score", "---"])
def test_names_are_valid_whatever_the_pod_is_called(name: str) -> None:
    """A label of the DNS, and never empty."""
    found = marks.named(name, "owner")

    assert len(found) <= 63
    assert found.strip("-") == found
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@pytest.mark.parametrize(
    ("node", "maker", "is_sibling"),
    [
        ("node-1", "other", True),
        ("node-1", "ours", False),
        ("node-1", None, False),
        ("node-2", "other", False),
    ],
)
def test_backends_of_one_node_may_share_a_place(
    node: str, maker: str | None, is_sibling: bool
) -> None:
    """Another node's instances are the core's to sort out."""
    labels = {} if maker is None else {marks.BACKEND: maker}
    pod = pod_of(labels=labels, annotations=marks.full(make_stamp(node_name=node)))

    assert marks.is_of_sibling(pod, "node-1", "ours") is is_sibling
