"""The patch is the difference, in the API server's merge rules, and nothing else."""

from typing import Any

from vk_provider.pods.status_patch import same, status_patch


def patched(
    current: dict[str, Any], wanted: dict[str, Any], **annotations: str | None
) -> dict[str, Any] | None:
    """The patch of a pod with that status."""
    pod = {"metadata": {"uid": "u1", "annotations": {"kept": "1", "same": "2"}}, "status": current}
    return status_patch(pod, wanted, annotations)


def test_no_difference_is_no_patch() -> None:
    """Also where the API server stores an absent time as null, or an empty text as none."""
    current = {
        "phase": "Running",
        "message": "",
        "qosClass": "Burstable",
        "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}],
        "containerStatuses": [{"name": "a", "state": {"running": {"startedAt": None}}}],
    }
    wanted = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "a", "state": {"running": {}}}],
        "initContainerStatuses": [],
    }

    assert patched(current, wanted) is None


def test_scalars_change_and_are_cleared_by_null() -> None:
    """And the UID is always there."""
    current = {"phase": "Pending", "reason": "Old", "message": "old", "hostIP": "10.0.0.1"}
    wanted = {"phase": "Running", "hostIP": "10.0.0.1", "observedGeneration": 2}

    assert patched(current, wanted) == {
        "metadata": {"uid": "u1"},
        "status": {"phase": "Running", "reason": None, "message": None, "observedGeneration": 2},
    }


def test_container_lists_are_sent_complete_or_cleared() -> None:
    """They are atomic at the API server."""
    one, two = {"name": "a", "ready": True}, {"name": "b", "ready": False}
    patch = patched(
        {"containerStatuses": [one, {"name": "b"}], "initContainerStatuses": [one]},
        {"containerStatuses": [one, two]},
    )

    assert patch is not None
    assert patch["status"] == {"containerStatuses": [one, two], "initContainerStatuses": None}


def test_addresses_are_replaced_since_they_merge_by_ip() -> None:
    """A merge of two families' worth is refused."""
    patch = patched(
        {"hostIPs": [{"ip": "10.0.0.1"}], "podIPs": [{"ip": "10.1.0.1"}], "podIP": "10.1.0.1"},
        {"hostIPs": [{"ip": "10.0.0.2"}]},
    )

    assert patch is not None
    assert patch["status"] == {
        "hostIPs": [{"$patch": "replace"}, {"ip": "10.0.0.2"}],
        "podIPs": [{"$patch": "replace"}],
        "podIP": None,
    }


def test_only_changed_conditions_are_sent_and_lose_what_they_no_longer_say() -> None:
    """They merge by type and field by field."""
    foreign = {"type": "example.com/lb", "status": "True"}
    ready = {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": None}
    now_ready = {"type": "Ready", "status": "True"}
    patch = patched({"conditions": [foreign, ready]}, {"conditions": [foreign, now_ready]})

    assert patch is not None
    assert patch["status"] == {"conditions": [{**now_ready, "reason": None}]}


def test_annotations_travel_in_the_same_patch() -> None:
    """Those that differ; None removes one; they alone need no status."""
    patch = patched({}, {}, kept=None, same="2", new="3", never=None)

    assert patch == {"metadata": {"uid": "u1", "annotations": {"kept": None, "new": "3"}}}


def test_a_malformed_pod_is_patched_all_the_same() -> None:
    """Nothing raises."""
    assert status_patch({}, {"phase": "Failed"}) == {
        "metadata": {"uid": None},
        "status": {"phase": "Failed"},
    }
    assert status_patch({"status": "no"}, {}) is None


def test_nulls_are_absent_and_everything_else_counts() -> None:
    """At any depth; lists keep their order and length."""
    assert same([{"a": None, "b": [1]}], [{"b": [1]}])
    assert same({"a": {"b": None}}, {"a": {}})
    assert not same({"a": {}}, {})
    assert not same([{"a": 1}], [{"a": 1}, {"b": 2}])
    assert not same([{"a": 1}, {"b": 2}], [{"b": 2}, {"a": 1}])


def test_conditions_of_a_change_of_size_go_away_again() -> None:
    """No other condition does."""
    current = {"conditions": [{"type": "PodResizePending"}, {"type": "Other"}]}

    patch = status_patch({"metadata": {"uid": "u"}, "status": current}, {"conditions": []})

    assert patch is not None
    assert patch["status"] == {"conditions": [{"$patch": "delete", "type": "PodResizePending"}]}
