"""Volumes as container disk, one network volume, or files in env."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.volumes import Storage, files_shown, files_value, storage

from vk_provider.pods.references import ObjectKey
from vk_provider.pods.types import ResolvedPod
from vk_provider.testing.builders import make_container, make_resolved_pod

NETWORK = "runpod.vk-provider.dev/network-volume"
WRAPPER = "runpod.vk-provider.dev/files-wrapper"


def pod_with(
    volumes: list[dict[str, Any]],
    annotations: dict[str, str] | None = None,
    size: int = 3,
    **container: Any,
) -> ResolvedPod:
    """A pod that mounts every volume at ``/<name>``; a ConfigMap holds ``size`` bytes."""
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    fields = {"volumeMounts": mounts} | container
    key = ObjectKey("ConfigMap", "default", "settings")
    return make_resolved_pod(
        containers=[make_container(**fields)],
        volumes=volumes,
        metadata={"annotations": annotations or {}},
        objects={key: {"data": {"a.ini": "x" * size}}},
    )


def paths(found: Storage) -> list[str]:
    """The paths of the problems."""
    return [problem.path for problem in found.problems]


CONFIG_MAP = {"name": "conf", "configMap": {"name": "settings"}}
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
SCRATCH = {"name": "scratch", "emptyDir": {}}


def test_a_pod_without_volumes_has_the_configured_disk(config: RunPodConfig) -> None:
    """And nothing else."""
    assert storage(pod_with([]), config) == Storage(20, {}, False, (), ())


@pytest.mark.parametrize(
    ("resources", "limit", "disk"),
    [
        ({"requests": {"ephemeral-storage": "10G"}}, None, 30),
        ({"limits": {"ephemeral-storage": "10Gi"}}, None, 31),
        ({}, "5G", 25),
        ({"requests": {"ephemeral-storage": "3G"}}, "5G", 25),
    ],
)
def test_scratch_space_comes_on_top_of_the_image(
    config: RunPodConfig, resources: dict[str, Any], limit: str | None, disk: int
) -> None:
    """The larger of what is asked for and what the folders may hold, rounded up."""
    folder = {"name": "scratch", "emptyDir": {"sizeLimit": limit} if limit else {}}

    assert storage(pod_with([folder], resources=resources), config).disk_gb == disk


def test_unreadable_sizes_are_refused(config: RunPodConfig) -> None:
    """Each by its path."""
    folder = {"name": "scratch", "emptyDir": {"sizeLimit": "much"}}
    resources = {"requests": {"ephemeral-storage": "more"}}

    assert paths(storage(pod_with([folder], resources=resources), config)) == [
        "spec.containers[0].resources.requests[ephemeral-storage]",
        "spec.volumes[0].emptyDir.sizeLimit",
    ]


def test_memory_is_no_medium(config: RunPodConfig) -> None:
    """RunPod has only the container disk."""
    folder = {"name": "shm", "emptyDir": {"medium": "Memory"}}

    assert paths(storage(pod_with([folder]), config)) == ["spec.volumes[0].emptyDir.medium"]


def test_shared_memory_is_there_already(config: RunPodConfig) -> None:
    """What servers of models ask for it with; its size is no matter of the disk."""
    folder = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}
    mounts = [{"name": "shm", "mountPath": "/dev/shm/"}]

    found = storage(pod_with([folder], volumeMounts=mounts), config)

    assert (paths(found), found.disk_gb) == ([], config.container_disk_gb)
    assert [each.note for each in found.notes] == [
        "is the container's own /dev/shm, of RunPod's size"
    ]


def test_what_a_mount_asks_for_in_vain_is_noted(config: RunPodConfig) -> None:
    """One folder of the container's own is all there is."""
    mount = {"name": "a", "mountPath": "/a", "readOnly": True, "subPath": "b"}
    defaults = {"mountPropagation": "None", "recursiveReadOnly": "Disabled"}

    found = storage(pod_with([{"name": "a"}], volumeMounts=[mount | defaults]), config)

    assert [each.path for each in found.notes][1:] == [
        "spec.containers[0].volumeMounts[0].readOnly",
        "spec.containers[0].volumeMounts[0].subPath",
    ]


def test_files_need_the_wrapper(config: RunPodConfig) -> None:
    """The message tells how. What is neither files nor folder nor claim can't come at all."""
    found = storage(pod_with([CONFIG_MAP, {"name": "v", "nfs": {"server": "x"}}]), config)

    assert paths(found) == ["spec.volumes[1].nfs", "spec.volumes[0].configMap"]
    assert WRAPPER in found.problems[1].message


def test_the_wrapper_is_wanted_by_annotation_or_configuration(config: RunPodConfig) -> None:
    """The annotation wins either way."""
    always = replace(config, files_wrapper=True)

    assert storage(pod_with([CONFIG_MAP], {WRAPPER: "true"}, command=["x"]), config).wrapped
    assert storage(pod_with([CONFIG_MAP], command=["x"]), always).wrapped
    assert not storage(pod_with([CONFIG_MAP], {WRAPPER: "false"}, command=["x"]), always).wrapped


def test_the_work_list_has_files_then_folders() -> None:
    """A person sees their names."""
    pod = pod_with([SCRATCH, CONFIG_MAP], command=["x"])

    assert files_value(pod) == "644 L2NvbmYvYS5pbmk= eHh4\ndir L3NjcmF0Y2g="
    assert files_shown(pod) == "644 /conf/a.ini (3 bytes)\ndir /scratch"


def test_a_claim_needs_a_network_volume(config: RunPodConfig) -> None:
    """By annotation or configuration."""
    mapped = {"network": [{"volumeId": "vol", "path": "/data"}]}

    assert paths(storage(pod_with([CLAIM]), config)) == ["spec.volumes[0].persistentVolumeClaim"]
    assert storage(pod_with([CLAIM], {NETWORK: "vol"}), config).mounts == mapped
    configured = replace(config, network_volume_id="vol")
    assert storage(pod_with([CLAIM]), configured).mounts == mapped
    assert storage(pod_with([]), configured).mounts == {}


def test_a_network_volume_without_a_claim_needs_a_path(config: RunPodConfig) -> None:
    """A claim that is bound at home would only keep the pod at home."""
    found = storage(pod_with([], {NETWORK: "vol:/models"}), config)

    assert found.mounts == {"network": [{"volumeId": "vol", "path": "/models"}]}
    bare = storage(pod_with([], {NETWORK: "vol"}), config)
    assert paths(bare) == [f"metadata.annotations[{NETWORK}]"]


def test_a_second_claim_is_refused(config: RunPodConfig) -> None:
    """RunPod mounts one; a path in the annotation is one already."""
    second = {"name": "more", "persistentVolumeClaim": {"claimName": "more"}}

    assert paths(storage(pod_with([CLAIM, second], {NETWORK: "vol"}), config)) == [
        "spec.volumes[1].persistentVolumeClaim"
    ]
    assert paths(storage(pod_with([CLAIM], {NETWORK: "vol:/models"}), config)) == [
        "spec.volumes[0].persistentVolumeClaim"
    ]


@pytest.mark.parametrize("key", ["subPath", "subPathExpr"])
def test_a_part_of_a_claim_is_refused(config: RunPodConfig, key: str) -> None:
    """RunPod mounts the whole."""
    mount = {"name": "data", "mountPath": "/data", key: "part"}

    found = storage(pod_with([CLAIM], {NETWORK: "vol"}, volumeMounts=[mount]), config)

    assert paths(found) == [f"spec.containers[0].volumeMounts[0].{key}"]


def test_what_differs_from_home_is_noted(config: RunPodConfig) -> None:
    """Folders, files that don't change, claims that can be written."""
    claim = {"name": "data", "mountPath": "/data", "readOnly": True}
    mounts = [claim, *({"name": name, "mountPath": f"/{name}"} for name in ("conf", "scratch"))]
    annotations = {WRAPPER: "true", NETWORK: "vol"}
    pod = pod_with([CLAIM, CONFIG_MAP, SCRATCH], annotations, volumeMounts=mounts, command=["x"])

    notes = {note.path: note.note for note in storage(pod, config).notes}

    assert list(notes) == [
        "spec.volumes[0].persistentVolumeClaim",
        "spec.volumes[1].configMap",
        "spec.volumes[2].emptyDir",
    ]
    assert "start wrapper" in notes["spec.volumes[2].emptyDir"]
