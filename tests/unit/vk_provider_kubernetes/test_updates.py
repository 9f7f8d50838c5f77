"""What a remote pod lacks of what its home pod says by now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.config import KubernetesConfig
from vk_provider_kubernetes.translate import GATE, translate
from vk_provider_kubernetes.updates import debug_patch, fingerprint, pod_patch, resize_patch

from vk_provider.testing.builders import make_container, make_resolved_pod

Pod = dict[str, Any]


def wanted(config: KubernetesConfig, **pod: Any) -> Pod:
    """What the other cluster is to have for a pod."""
    return dict(translate(make_resolved_pod(**pod), config).body)


def remote(body: Mapping[str, Any], **spec: Any) -> Pod:
    """The pod over there that was made of it."""
    metadata = {**body["metadata"], "uid": "remote-1"}
    return {**body, "metadata": metadata, "spec": {**body["spec"], **spec}}


def changed(config: KubernetesConfig, before: Pod, after: Pod) -> Pod:
    """The patch between two versions of a pod, without what remembers the version."""
    patch = pod_patch(remote(wanted(config, **before)), wanted(config, **after))
    assert patch is not None
    assert patch["metadata"].pop("uid") == "remote-1"
    notes = patch["metadata"].pop("annotations", {})
    notes.pop(marks.SPEC, None)
    notes.pop(marks.LABELS, None)
    return {**patch, "annotations": notes}


def test_what_is_as_it_should_be_needs_no_call(config: KubernetesConfig) -> None:
    """Nor is anything resized or debugged."""
    body = wanted(config, containers=[make_container(resources={"limits": {"cpu": "1"}})])

    assert pod_patch(remote(body), body) is None
    assert resize_patch(remote(body), body) is None
    assert debug_patch(remote(body), []) is None


def test_the_gate_is_opened(config: KubernetesConfig) -> None:
    """Once the copies are there; other gates are left."""
    body = wanted(config)
    gates = [{"name": "theirs"}, {"name": GATE}]

    patch = pod_patch(remote(body, schedulingGates=gates), body)

    opening = {"schedulingGates": [{"$patch": "delete", "name": GATE}]}
    assert patch == {"metadata": {"uid": "remote-1"}, "spec": opening}


def test_labels_and_annotations_follow(config: KubernetesConfig) -> None:
    """A label that went at home goes; one of the other cluster's own stays."""
    before = {"metadata": {"labels": {"a": "1", "gone": "x"}}}
    after = {"metadata": {"labels": {"a": "2"}, "annotations": {"n": "v"}}}

    patch = changed(config, before, after)

    assert patch["metadata"]["labels"] == {"a": "2", "gone": None}
    assert patch["annotations"] == {"n": "v"}
    mutated = remote(wanted(config))
    mutated["metadata"]["labels"]["injected"] = "yes"
    assert pod_patch(mutated, wanted(config)) is None


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_a_new_image_is_brought_over_by_its_container(field: str, config: KubernetesConfig) -> None:
    """The others are not mentioned."""
    one, two = make_container("one", image="a:1"), make_container("two", image="b:1")

    patch = changed(config, {field: [one, two]}, {field: [one, {**two, "image": "b:2"}]})

    assert patch["spec"] == {field: [{"name": "two", "image": "b:2"}]}


def test_an_image_that_admission_over_there_rewrote_stands(config: KubernetesConfig) -> None:
    """It was made from what is wanted still; a label changes nothing of that."""
    body = wanted(config)
    mirrored = remote(body, containers=[make_container(image="mirror.example/app:1")])

    patch = pod_patch(mirrored, wanted(config, metadata={"labels": {"a": "b"}}))

    assert patch is not None
    assert "spec" not in patch


def test_a_deadline_is_brought_over_and_never_taken_away(config: KubernetesConfig) -> None:
    """The API allows no more."""
    assert changed(config, {}, {"activeDeadlineSeconds": 60})["spec"] == {
        "activeDeadlineSeconds": 60
    }
    assert "spec" not in changed(config, {"activeDeadlineSeconds": 60}, {})


def test_tolerations_are_added_to_those_of_the_other_cluster(config: KubernetesConfig) -> None:
    """One that is there with another time is prolonged."""
    life = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    old = {"key": "gpu", "value": "x", "effect": "NoExecute", "tolerationSeconds": 1}
    longer = {**old, "operator": "Equal", "tolerationSeconds": 9}
    new = {"key": "spot", "operator": "Exists"}
    there = remote(wanted(config, tolerations=[old]), tolerations=[old, life])

    patch = pod_patch(there, wanted(config, tolerations=[longer, new]))

    assert patch is not None
    assert patch["spec"]["tolerations"] == [longer, life, new]


def test_a_resize_is_of_cpu_and_memory(config: KubernetesConfig) -> None:
    """Only of what differs, by container."""
    gpu = {"nvidia.com/gpu": "1"}
    before = {"limits": {"cpu": "1", "memory": "1Gi", **gpu}, "requests": {"cpu": "1"}}
    after = {"limits": {"cpu": "2", "memory": "1Gi", **gpu}, "requests": {"cpu": "2"}}
    there = remote(wanted(config, containers=[make_container(resources=before)]))

    patch = resize_patch(there, wanted(config, containers=[make_container(resources=after)]))

    resized = {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}
    containers = [{"name": "main", "resources": resized}]
    assert patch == {"metadata": {"uid": "remote-1"}, "spec": {"containers": containers}}


def test_another_change_resizes_nothing(config: KubernetesConfig) -> None:
    """Also where the other cluster's defaults added resources."""
    there = remote(wanted(config))

    assert resize_patch(there, wanted(config, containers=[make_container(image="a:2")])) is None


def test_a_debugger_is_added_once(config: KubernetesConfig) -> None:
    """Those before it are not mentioned: they may not change."""
    first, second = make_container("one"), make_container("two")
    there = remote(wanted(config), ephemeralContainers=[first])

    patch = debug_patch(there, [first, second])

    assert patch == {"metadata": {"uid": "remote-1"}, "spec": {"ephemeralContainers": [second]}}


def test_fingerprints_tell_versions_apart_and_nothing_else(config: KubernetesConfig) -> None:
    """The order of keys is no news."""
    one = {"containers": [make_container(resources={"limits": {"cpu": "1", "memory": "1"}})]}
    same = {"containers": [make_container(resources={"limits": {"memory": "1", "cpu": "1"}})]}

    assert fingerprint(one) == fingerprint(same)
    assert fingerprint(one) != fingerprint({**one, "activeDeadlineSeconds": 3})
