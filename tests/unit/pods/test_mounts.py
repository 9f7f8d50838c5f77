"""The volumes of a pod as its container mounts them."""

from __future__ import annotations

from typing import Any

import pytest

from vk_provider.pods.mounts import (
    CLAIM,
    FOLDER,
    Mount,
    folder_notes,
    mount_notes,
    mounts,
    unmountable,
    volumes,
)
from vk_provider.pods.types import ResolvedPod
from vk_provider.testing.builders import make_container, make_resolved_pod

AT = "spec.containers[0].volumeMounts"


def pod_with(*volumes: dict[str, Any], **mount: Any) -> ResolvedPod:
    """A pod that mounts every volume with these fields, and one that is none."""
    mounts = [{"name": each["name"], **mount} for each in (*volumes, {"name": "none"})]
    return make_resolved_pod(
        containers=[make_container(volumeMounts=mounts)], volumes=list(volumes)
    )


def mounted(*volumes: dict[str, Any], **mount: Any) -> list[Mount]:
    """What its container mounts."""
    pod = pod_with(*volumes, **mount)
    return list(mounts(pod, pod.containers[0]))


def test_a_mount_knows_its_volume_and_both_field_paths() -> None:
    """The folder without needless slashes and dots."""
    claim = {"name": "data", CLAIM: {"claimName": "data"}}

    (_, found) = mounted({"name": "other"}, claim, mountPath="/data/./x/")

    assert (found.path, found.mount_path) == (f"spec.volumes[1].{CLAIM}", f"{AT}[1]")
    assert (found.folder, found.medium) == ("/data/x", "")


def test_a_volume_without_a_source_is_a_folder() -> None:
    """As the API server reads it. A folder may be memory."""
    shared = {"name": "shm", FOLDER: {"medium": "Memory"}}

    bare, memory = mounted({"name": "bare", "nfs": None}, shared)

    assert [(each.kind, each.medium) for each in (bare, memory)] == [
        (FOLDER, ""),
        (FOLDER, "Memory"),
    ]


def test_the_token_volume_is_no_volume() -> None:
    """It was put there by admission, and the core drops it."""
    source = {"serviceAccountToken": {"path": "token"}}
    token = {"name": "kube-api-access-abcde", "projected": {"sources": [source]}}

    assert list(volumes(pod_with(token))) == []


@pytest.mark.parametrize("kind", ["hostPath", "nfs", "csi", "ephemeral", "image"])
def test_other_volumes_are_refused_by_kind(kind: str) -> None:
    """Also where nothing mounts them; with what a claim would be."""
    folder, claim = {"name": "f"}, {"name": "c", CLAIM: {"claimName": "c"}}
    pod = make_resolved_pod(volumes=[folder, claim, {"name": "v", kind: {"x": 1}}])

    (found,) = unmountable(pod, "Acme", "a disk")

    assert found.path == f"spec.volumes[2].{kind}"
    assert found.message == (
        "Acme can't mount it; allowed: emptyDir, persistentVolumeClaim (as a disk)"
    )


def test_what_a_mount_asks_for_in_vain_is_noted() -> None:
    """Of any mount, and of a folder more; what is the default asks for nothing."""
    asked = {"readOnly": True, "subPath": "b", "mountPropagation": "Bidirectional"}
    (found,) = mounted({"name": "e"}, recursiveReadOnly="Disabled", subPathExpr="", **asked)

    assert [each.path for each in mount_notes(found)] == [f"{AT}[0].mountPropagation"]
    assert {each.path: each.note for each in folder_notes(found, "box")} == {
        f"{AT}[0].readOnly": "not enforced: the folder stays writable",
        f"{AT}[0].subPath": "has no effect: the folder is the box's own",
    }
