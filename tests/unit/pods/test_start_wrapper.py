"""Files that a start wrapper writes."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from vk_provider.faults import FieldProblem
from vk_provider.pods.mounts import Mount, mounts
from vk_provider.pods.references import ObjectKey
from vk_provider.pods.start_wrapper import (
    MOST_FILES_BYTES,
    file_lines,
    file_notes,
    file_problems,
    is_needed,
    is_wanted,
    shown_lines,
)
from vk_provider.pods.types import ResolvedPod
from vk_provider.testing.builders import make_container, make_resolved_pod

ANNOTATION = "acme.vk-provider.dev/files"
CONFIG_MAP = {"name": "conf", "configMap": {"name": "settings", "defaultUser": 7}}
FOLDER = {"name": "scratch", "emptyDir": {}}


def pod_with(*volumes: dict[str, Any], size: int = 3, **container: Any) -> ResolvedPod:
    """A pod that mounts every volume at ``/<name>``; a ConfigMap holds ``size`` bytes."""
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    key = ObjectKey("ConfigMap", "default", "settings")
    return make_resolved_pod(
        containers=[make_container(volumeMounts=mounts, **container)],
        volumes=list(volumes),
        objects={key: {"data": {"a.ini": "x" * size}}},
    )


def mounted(pod: ResolvedPod) -> list[Mount]:
    """What its container mounts."""
    return list(mounts(pod, pod.containers[0]))


def problems(pod: ResolvedPod, *, wanted: bool) -> list[FieldProblem]:
    """Why the files can't come along."""
    return list(file_problems("Acme", ANNOTATION, pod.containers[0], mounted(pod), wanted))


@pytest.mark.parametrize(
    ("annotations", "usually", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({ANNOTATION: "true"}, False, True),
        ({ANNOTATION: "false"}, True, False),
    ],
)
def test_the_wrapper_is_wanted_by_annotation_or_configuration(
    annotations: dict[str, str], usually: bool, wanted: bool
) -> None:
    """The annotation wins either way."""
    pod = make_resolved_pod(metadata={"annotations": annotations})

    assert is_wanted(pod, ANNOTATION, usually) is wanted


def test_the_wrapper_is_needed_where_there_is_something_to_make() -> None:
    """Else the image may have no shell; and it must know what to become."""
    given: dict[str, Any] = {"command": ["x"]}
    pods = [pod_with(FOLDER, **given), pod_with(CONFIG_MAP, **given), pod_with(**given)]

    needed = [is_needed(pod.containers[0], mounted(pod)) for pod in (*pods, pod_with(FOLDER))]

    assert needed == [True, True, False, False]


def test_files_need_the_wrapper() -> None:
    """The message tells how. Folders do without."""
    (found,) = problems(pod_with(CONFIG_MAP, FOLDER), wanted=False)

    assert found.path == "spec.volumes[0].configMap"
    assert ANNOTATION in found.message
    assert problems(pod_with(FOLDER), wanted=False) == []


def test_the_wrapper_needs_a_command() -> None:
    """Nobody knows an image's entrypoint from outside."""
    found = problems(pod_with(CONFIG_MAP), wanted=True)

    assert [each.path for each in found] == ["spec.containers[0].command"]


def test_many_bytes_of_files_are_refused() -> None:
    """They travel in the environment."""
    fits = pod_with(CONFIG_MAP, size=MOST_FILES_BYTES, command=["x"])
    over = pod_with(CONFIG_MAP, size=MOST_FILES_BYTES + 1, command=["x"])

    assert problems(fits, wanted=True) == []
    assert [each.path for each in problems(over, wanted=True)] == ["spec.volumes[0].configMap"]


def test_what_is_otherwise_with_written_files_is_noted() -> None:
    """They don't change, and belong to whoever wrote them."""
    files, folder = mounted(pod_with(CONFIG_MAP, FOLDER))

    assert [each.path for each in file_notes(files)] == [
        "spec.volumes[0].configMap",
        "spec.volumes[0].configMap.defaultUser",
    ]
    assert list(file_notes(folder)) == []


def test_files_are_lines_of_mode_path_and_content() -> None:
    """A person sees only the size."""
    container = pod_with(CONFIG_MAP).containers[0]

    (line,) = file_lines(container)

    mode, path, content = line.split(" ")
    assert (mode, base64.b64decode(path), base64.b64decode(content)) == (
        "644",
        b"/conf/a.ini",
        b"xxx",
    )
    assert shown_lines(container) == ["644 /conf/a.ini (3 bytes)"]
