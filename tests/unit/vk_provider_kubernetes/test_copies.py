"""What goes along with a pod: only what it refers to, under names that are shared by equals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.copies import Copies

from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey
from vk_provider.testing.builders import make_stamp

Objects = Mapping[ObjectKey, Mapping[str, Any]]


def test_only_named_keys_leave_home(objects: Objects) -> None:
    """Where every reference names its keys."""
    copies = Copies(make_stamp(), objects)
    copies.want(SECRET, "login", ["password"])

    (copy,) = copies.all()

    assert copy.content == {"data": {"password": "c2VjcmV0LXdvcmQ="}, "type": "Opaque"}
    assert "c2VjcmV0" not in repr(copy)


def test_one_whole_reference_takes_the_whole_object(objects: Objects) -> None:
    """Binary entries included."""
    copies = Copies(make_stamp(), objects)
    copies.want(CONFIG_MAP, "conf", ["mode"])
    copies.want(CONFIG_MAP, "conf")

    (copy,) = copies.all()

    assert copy.content == {
        "data": {"mode": "fast", "level": "3"},
        "binaryData": {"blob": "AAE="},
    }


def test_pods_that_need_the_same_share_a_copy(objects: Objects) -> None:
    """Replicas do; another node, another set of keys, another namespace do not."""

    def name(pod: str = "app-1", keys: list[str] | None = None, **stamp: str) -> str:
        copies = Copies(make_stamp(pod, **stamp), objects)
        copies.want(CONFIG_MAP, "conf", keys)
        return copies.name_of(CONFIG_MAP, "conf")

    assert name("app-1") == name("app-2")
    assert len({name(), name(keys=["mode"]), name(node_name="n2"), name(namespace="b")}) == 4


def test_a_pull_secret_keeps_its_type(objects: Objects) -> None:
    """The other cluster's kubelet looks for it."""
    copies = Copies(make_stamp(), objects)
    copies.want(SECRET, "regcred")

    (copy,) = copies.all()

    assert copy.content["type"] == "kubernetes.io/dockerconfigjson"


def test_an_optional_object_that_is_not_there_has_no_copy(objects: Objects) -> None:
    """The reference stays, and stays empty over there."""
    copies = Copies(make_stamp(), objects)
    copies.want(SECRET, "absent")

    assert copies.all() == ()
    assert copies.name_of(SECRET, "absent").startswith("absent-")


def test_a_copy_whose_object_went_at_home_loses_its_content(objects: Objects) -> None:
    """Under the name that it had, so that its files go as well."""
    before = Copies(make_stamp(), objects)
    after = Copies(make_stamp(), {})
    for copies in (before, after):
        copies.want(CONFIG_MAP, "conf")
        copies.want(SECRET, "login", ["password"])

    assert before.emptied() == ()
    assert [each.name for each in after.emptied()] == [each.name for each in before.all()]
    assert [each.content for each in after.emptied()] == [
        {"data": {}, "binaryData": {}},
        {"data": {}},
    ]


def test_values_of_home_are_the_pods_own(objects: Objects) -> None:
    """They name it, so nobody shares them."""
    copies, other = (Copies(make_stamp(name), objects) for name in ("app-1", "app-2"))

    key = copies.value("app-1")

    (copy,) = copies.all()
    assert copy.content == {"data": {key: "app-1"}}
    assert copy.name == copies.values_name != other.values_name


def test_a_copy_is_stamped_but_not_with_a_pods_uid(objects: Objects) -> None:
    """Several may own it."""
    copies = Copies(make_stamp(), objects)
    copies.want(CONFIG_MAP, "conf")

    metadata = copies.all()[0].body("vk-node-1", make_stamp())["metadata"]

    assert metadata["namespace"] == "vk-node-1"
    assert metadata["labels"] == {marks.CLUSTER: "cluster-1", marks.NODE: "node-1"}
    assert metadata["annotations"] == {marks.COPY: "ConfigMap default/conf"}


def test_a_typed_secret_is_encoded() -> None:
    """``explain`` takes what a person wrote."""
    key = ObjectKey(SECRET, "default", "login")
    copies = Copies(make_stamp(), {key: {"stringData": {"password": "x"}}})
    copies.want(SECRET, "login")

    assert copies.all()[0].content["data"] == {"password": "eA=="}
