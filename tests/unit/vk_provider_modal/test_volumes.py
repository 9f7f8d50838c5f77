"""Volumes: claims, files, scratch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from vk_provider_modal.config import ModalConfig
from vk_provider_modal.volumes import Storage, files_shown, files_value, storage

from vk_provider.pods.types import ResolvedPod, VolumeFile
from vk_provider.testing.builders import make_container, make_resolved_pod

CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def pod(*volumes: dict[str, Any], at: str = "/data", **container: Any) -> ResolvedPod:
    """A pod that mounts all of its volumes."""
    mounts = [
        {"name": v["name"], "mountPath": at if i == 0 else f"{at}{i}"}
        for i, v in enumerate(volumes)
    ]
    fields = {"volumeMounts": mounts, **container}
    return make_resolved_pod(containers=[make_container(**fields)], volumes=list(volumes))


def paths(found: Storage) -> list[str]:
    """What is refused."""
    return [problem.path for problem in found.problems]


def test_a_claim_is_mounted_as_its_volume(configured: Callable[..., ModalConfig]) -> None:
    """By the name that the configuration gives it."""
    found = storage(pod(CLAIM), configured(volumes={"data": "training"}))

    assert found.volumes == {"/data": {"volume": "training"}}
    assert found.problems == ()


def test_a_claim_that_is_nowhere_is_refused(config: ModalConfig) -> None:
    """With both ways to map it."""
    assert paths(storage(pod(CLAIM), config)) == ["spec.volumes[0].persistentVolumeClaim"]


def test_a_volume_is_mounted_once(configured: Callable[..., ModalConfig]) -> None:
    """Modal's own rule, told before it is broken."""
    other = {"name": "more", "persistentVolumeClaim": {"claimName": "more"}}
    config = configured(volumes={"data": "same", "more": "same"})

    assert paths(storage(pod(CLAIM, other), config)) == ["spec.containers[0].volumeMounts[1]"]


def test_files_need_the_wrapper_and_the_wrapper_a_command(
    configured: Callable[..., ModalConfig],
) -> None:
    """Refused by path, with the way out."""
    source = {"name": "s", "configMap": {"name": "s", "optional": True}}
    wrapping = configured(files_wrapper=True)

    assert paths(storage(pod(source), configured())) == ["spec.volumes[0].configMap"]
    assert paths(storage(pod(source), wrapping)) == ["spec.containers[0].command"]
    found = storage(pod(source, command=["a"]), wrapping)
    assert found.wrapped
    assert "later changes" in found.notes[0].note


def test_scratch_space_is_a_note(config: ModalConfig) -> None:
    """In memory or not; shared memory is the sandbox's own."""
    memory = {"name": "m", "emptyDir": {"medium": "Memory"}}

    assert "own /dev/shm" in storage(pod(memory, at="/dev/shm"), config).notes[0].note
    assert "not in memory" in storage(pod(memory), config).notes[0].note
    assert "if the image has it" in storage(pod({"name": "e"}), config).notes[0].note


def test_what_a_mount_asks_for_in_vain_is_noted(configured: Callable[..., ModalConfig]) -> None:
    """Of a folder more than of a Modal Volume, which can be read-only or a part."""
    asked = {"readOnly": True, "subPath": "b", "mountPropagation": "Bidirectional"}
    mounts = [{"name": n, "mountPath": f"/{n}", **asked} for n in ("data", "e")]
    config = configured(volumes={"data": "training"})

    found = storage(pod(CLAIM, {"name": "e"}, volumeMounts=mounts), config)

    assert found.volumes["/data"] == {"volume": "training", "readOnly": True, "subPath": "b"}
    assert [each.path.removeprefix("spec.containers[0].volumeMounts") for each in found.notes] == [
        "[0].mountPropagation",
        "spec.volumes[1].emptyDir",
        "[1].readOnly",
        "[1].subPath",
        "[1].mountPropagation",
    ]


def test_the_work_list_has_folders_then_files() -> None:
    """In base64, so that no name can break it."""
    made = pod({"name": "e", "emptyDir": {}})
    made = replace(
        made, containers=(replace(made.containers[0], files=(VolumeFile("/a", b"b", 0o600),)),)
    )

    assert files_value(made) == "folder L2RhdGE=\n600 L2E= Yg=="
    assert files_shown(made) == "folder /data\n600 /a (1 bytes)"
