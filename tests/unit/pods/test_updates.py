"""What differs between two versions of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from vk_provider.pods.updates import face, in_vain
from vk_provider.testing.builders import make_container, make_pod


def spec(**container: Any) -> dict[str, Any]:
    """The spec of a pod whose container has these fields."""
    found: dict[str, Any] = make_pod(containers=[make_container(**container)])["spec"]
    return found


def test_a_face_is_what_a_backend_may_copy() -> None:
    """Labels, annotations but for our own, and the spec."""
    notes = {"a": "b", "vk-provider.dev/placement": "{}"}
    pod = make_pod(metadata={"labels": {"x": "y"}, "annotations": notes})

    assert face(pod) == ({"x": "y"}, {"a": "b"}, pod["spec"])
    assert face(pod) == face({**pod, "status": {"phase": "Running"}})


@pytest.mark.parametrize("after", [spec(), spec(env=[]), {}])
def test_what_an_instance_does_not_lack_is_not_told(after: dict[str, Any]) -> None:
    """Nor is nothing."""
    assert in_vain(spec(), after) == []


def test_the_same_spec_is_not_even_looked_at() -> None:
    """Most changes of a pod are its status."""
    same = spec()

    assert in_vain(same, same) == []


def test_an_image_is_told_with_both_values() -> None:
    """By its field; containers are the same by their name."""
    (told,) = in_vain(spec(image="app:1"), spec(image="app:2"))

    assert told == "spec.containers[0].image was changed from app:1 to app:2"
    assert in_vain(spec(name="a"), spec(name="b", image="other")) == []


def test_resources_are_told_as_people_write_them() -> None:
    """Also where there were none."""
    more = {"limits": {"cpu": "2"}, "requests": {}}

    (told,) = in_vain(spec(), spec(resources=more))

    expected = "resources was changed from None to limits {'cpu': '2'}"
    assert told.endswith(expected)
    assert in_vain(spec(resources={}), spec(resources=more))[0].endswith(
        "from nothing to limits {'cpu': '2'}"
    )


def test_init_containers_count_as_well() -> None:
    """A sidecar's image may change too."""
    before = make_pod(initContainers=[make_container("init", image="a")])["spec"]
    after = make_pod(initContainers=[make_container("init", image="b")])["spec"]

    assert in_vain(before, after)[0].startswith("spec.initContainers[0].image")
