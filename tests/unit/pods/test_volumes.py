"""The files of ConfigMap, Secret, projected and downward API volumes."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from vk_provider.pods.downward import PodFields
from vk_provider.pods.lookup import Lookup
from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey
from vk_provider.pods.types import Json, VolumeFile
from vk_provider.pods.volumes import Volumes
from vk_provider.testing.builders import NODE_NAME, make_container, make_pod

PATH = "spec.containers[0]"
OBJECTS: dict[ObjectKey, Json | None] = {
    ObjectKey(CONFIG_MAP, "default", "settings"): {
        "data": {"a.conf": "one", "b.conf": "two"},
        "binaryData": {"c.bin": base64.b64encode(b"\x00\xff").decode()},
    },
    ObjectKey(SECRET, "default", "login"): {"stringData": {"password": "s"}},
}


def volumes(*volumes_of_pod: Mapping[str, Any]) -> Volumes:
    """The volumes of a pod that has these."""
    pod = make_pod(volumes=list(volumes_of_pod))
    lookup = Lookup("default", OBJECTS)
    return Volumes(pod, lookup, PodFields(pod, NODE_NAME, None, {}, lookup))


def mounting(*mounts: Mapping[str, Any]) -> dict[str, Any]:
    """A container with these mounts; a mount is at /m unless it says otherwise."""
    return make_container(
        volumeMounts=[{"name": "v", "mountPath": "/m", **mount} for mount in mounts]
    )


def plain(files: Sequence[VolumeFile]) -> dict[str, bytes]:
    """Files by their path."""
    return {file.path: file.content for file in files}


def settings(**source: Any) -> dict[str, Any]:
    """A volume of the ConfigMap."""
    return {"name": "v", "configMap": {"name": "settings"} | source}


def test_every_key_is_a_file_below_the_mount() -> None:
    """Bytes too; readable by all unless told otherwise."""
    files = volumes(settings()).files(mounting({}), PATH, {})

    assert plain(files) == {"/m/a.conf": b"one", "/m/b.conf": b"two", "/m/c.bin": b"\x00\xff"}
    assert {file.mode for file in files} == {0o644}


def test_items_choose_names_and_modes() -> None:
    """An item's own mode before the volume's."""
    items = [{"key": "a.conf", "path": "x/y"}, {"key": "b.conf", "path": "z", "mode": 0o400}]

    files = volumes(settings(items=items, defaultMode=0o600)).files(mounting({}), PATH, {})

    assert [(file.path, file.mode) for file in files] == [("/m/x/y", 0o600), ("/m/z", 0o400)]


def test_a_secret_volume_says_secret_name() -> None:
    """And a projected source says name."""
    direct = {"name": "v", "secret": {"secretName": "login"}}
    source = {"secret": {"name": "login"}}
    projected = {"name": "v", "projected": {"sources": [source]}}

    for volume in (direct, projected):
        assert plain(volumes(volume).files(mounting({}), PATH, {})) == {"/m/password": b"s"}


def test_sub_path_mounts_one_file_or_one_folder() -> None:
    """The file stands at the mount path itself; what isn't there mounts nothing."""
    items = [{"key": "a.conf", "path": "x/y"}, {"key": "b.conf", "path": "z"}]
    read = volumes(settings(items=items))

    def files(sub_path: str) -> dict[str, bytes]:
        return plain(read.files(mounting({"subPath": sub_path}), PATH, {}))

    assert files("z") == {"/m": b"two"}
    assert files("x") == {"/m/y": b"one"}
    assert files("./x/") == {"/m/y": b"one"}
    assert files("nope") == {}


def test_sub_path_expr_expands_the_containers_variables() -> None:
    """One that isn't known is refused, since no wait can help."""
    read = volumes(settings())
    container = mounting({"subPathExpr": "$(NAME).conf"})

    assert plain(read.files(container, PATH, {"NAME": "a"})) == {"/m": b"one"}
    assert read.files(container, PATH, {}) == ()

    (problem,) = read.lookup.unresolvable
    assert problem.path == "spec.containers[0].volumeMounts[0].subPathExpr"
    assert "NAME" in problem.message


def test_a_projection_joins_its_sources() -> None:
    """Where two write the same file, the later one wins."""
    volume = {
        "name": "v",
        "projected": {
            "defaultMode": 0o440,
            "sources": [
                {"configMap": {"name": "settings", "items": [{"key": "a.conf", "path": "x"}]}},
                {"secret": {"name": "login", "items": [{"key": "password", "path": "x"}]}},
                {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": _NAME}}]}},
            ],
        },
    }

    files = volumes(volume).files(mounting({}), PATH, {})

    assert plain(files) == {"/m/x": b"s", "/m/n": b"app-1"}
    assert {file.mode for file in files} == {0o440}


_NAME = "metadata.name"


def test_a_downward_volume_writes_fields_and_resources() -> None:
    """A field that isn't known is noted, and its file left out."""
    items = [
        {"path": "name", "fieldRef": {"fieldPath": _NAME}, "mode": 0o400},
        {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}},
        {"path": "ip", "fieldRef": {"fieldPath": "status.podIP"}},
    ]
    read = volumes({"name": "v", "downwardAPI": {"items": items}})

    assert plain(read.files(mounting({}), PATH, {})) == {"/m/name": b"app-1", "/m/cpu": b"0"}
    assert [each.path for each in read.lookup.unresolvable] == [
        "spec.volumes[0].downwardAPI.items[2].fieldRef.fieldPath"
    ]


def test_a_token_that_the_user_asked_for_is_noted() -> None:
    """Only the volume that admission adds is dropped without a word."""
    token = {"serviceAccountToken": {"path": "token", "audience": "vault"}}
    mine = {"name": "v", "projected": {"sources": [token]}}
    theirs = {**mine, "name": "kube-api-access-abcde"}
    read = volumes(mine, theirs)

    assert read.files(mounting({}, {"name": "kube-api-access-abcde"}), PATH, {}) == ()

    (problem,) = read.lookup.unresolvable
    assert problem.path == "spec.volumes[0].projected.sources[0].serviceAccountToken"


def test_missing_objects_and_keys_are_noted_once() -> None:
    """However many containers mount the volume."""
    items = [{"key": "nope", "path": "x"}, {"key": "a.conf", "path": "y"}]
    absent = {"name": "w", "secret": {"secretName": "nope", "optional": True}}
    read = volumes(settings(items=items), absent)
    container = mounting({}, {"name": "w", "mountPath": "/w"})

    for _ in range(2):
        assert plain(read.files(container, PATH, {})) == {"/m/y": b"one"}

    assert [each.key for each in read.lookup.missing] == ["nope"]
    assert [each.name for each in read.lookup.skipped] == ["nope"]


def test_other_volumes_and_unmounted_ones_are_no_files() -> None:
    """A volume that nobody mounts is not even looked up."""
    read = volumes({"name": "v", "emptyDir": {}}, {"name": "w", "secret": {"secretName": "nope"}})

    assert read.files(mounting({}, {"name": "unknown"}), PATH, {}) == ()
    assert not read.lookup.missing


def test_contents_are_not_shown() -> None:
    """A repr may end up in a log."""
    read = volumes({"name": "v", "secret": {"secretName": "login"}})
    files = read.files(mounting({}), PATH, {})

    assert "b's'" not in repr((read, files))
