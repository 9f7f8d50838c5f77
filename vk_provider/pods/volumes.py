"""The files of ConfigMap, Secret, projected and downward API volumes, per container.

Other volumes (emptyDir, claims, hostPath, ...) are no files: whether they can be honoured is the
provider's translation's to say. A volume that no container mounts is not looked up, as with a
kubelet.
Fed by :mod:`.resolve`; looks objects up in a :class:`.lookup.Lookup`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vk_provider.pods.downward import PodFields
from vk_provider.pods.expansion import Expander, unknown_names
from vk_provider.pods.lookup import Lookup, Reference
from vk_provider.pods.reading import mapping, mappings, number, text
from vk_provider.pods.references import CONFIG_MAP, SECRET, is_token_volume
from vk_provider.pods.types import Json, VolumeFile

_DEFAULT_MODE = 0o644


@dataclass(frozen=True, slots=True)
class _File:
    """A file by its path within the volume."""

    path: str
    content: bytes = field(repr=False)
    mode: int


@dataclass(slots=True)
class Volumes:
    """The file volumes of one pod. Each is read once, however many containers mount it."""

    pod: Json
    lookup: Lookup
    fields: PodFields
    _read: dict[str, tuple[_File, ...]] = field(default_factory=dict)

    def files(self, container: Json, path: str, env: Mapping[str, str]) -> tuple[VolumeFile, ...]:
        """Every file that ``container``'s mounts put into it, in the order of the mounts."""
        found: list[VolumeFile] = []
        for index, mount in mappings(container, "volumeMounts"):
            sub_path = self._sub_path(mount, f"{path}.volumeMounts[{index}]", env)
            if sub_path is not None:
                files = self._of_volume(text(mount, "name"))
                found += _mounted(files, text(mount, "mountPath"), sub_path)
        return tuple(found)

    def _sub_path(self, mount: Json, path: str, env: Mapping[str, str]) -> str | None:
        if sub_path := text(mount, "subPath"):
            return posixpath.normpath(sub_path)
        expression = text(mount, "subPathExpr")
        if unknown := unknown_names(expression, env):
            message = f"no variable {', '.join(unknown)} in the container's env"
            self.lookup.refuse(f"{path}.subPathExpr", message)
            return None
        expanded = Expander(self.lookup).expand(expression, env, f"{path}.subPathExpr")
        return None if expanded is None else posixpath.normpath(expanded or ".")

    def _of_volume(self, name: str) -> tuple[_File, ...]:
        if name not in self._read:
            volumes = mappings(mapping(self.pod, "spec"), "volumes")
            self._read[name] = tuple(
                file
                for index, volume in volumes
                if text(volume, "name") == name and not is_token_volume(volume)
                for file in self._files_of(volume, f"spec.volumes[{index}]")
            )
        return self._read[name]

    def _files_of(self, volume: Json, path: str) -> Iterator[_File]:
        for kind, source in volume.items():
            if isinstance(source, Mapping):
                mode = number(source, "defaultMode")
                mode = _DEFAULT_MODE if mode is None else mode
                yield from self._source(kind, source, f"{path}.{kind}", mode)

    def _source(self, kind: str, source: Json, path: str, mode: int) -> Iterator[_File]:
        if kind == "configMap":
            yield from self._of_object(Reference.read(CONFIG_MAP, source, path), source, mode)
        elif kind == "secret":
            # A Secret volume says `secretName`; a projected source says `name`.
            name_field = "secretName" if "secretName" in source else "name"
            reference = Reference.read(SECRET, source, path, name_field)
            yield from self._of_object(reference, source, mode)
        elif kind == "downwardAPI":
            yield from self._of_fields(source, path, mode)
        elif kind == "projected":
            yield from self._of_projection(source, path, mode)

    def _of_projection(self, projected: Json, path: str, mode: int) -> Iterator[_File]:
        for index, part in mappings(projected, "sources"):
            for kind in part:
                where = f"{path}.sources[{index}].{kind}"
                if kind in ("configMap", "secret", "downwardAPI"):
                    yield from self._source(kind, mapping(part, kind), where, mode)
                else:
                    self.lookup.refuse(where, "only the place where the pod runs can issue it")

    def _of_object(self, reference: Reference, source: Json, mode: int) -> Iterator[_File]:
        entries = self.lookup.entries(reference)
        if entries is None:
            return
        items = [item for _, item in mappings(source, "items")]
        for item in items or [{"key": key, "path": key} for key in entries.names()]:
            content = self.lookup.content(entries, text(item, "key"))
            if content is not None:
                yield _file(item, content, mode)

    def _of_fields(self, source: Json, path: str, mode: int) -> Iterator[_File]:
        for index, item in mappings(source, "items"):
            value = self.fields.read(_origin(item), f"{path}.items[{index}]", {})
            if value is not None:
                yield _file(item, value.encode(), mode)


def _origin(item: Json) -> Json:
    return {key: item[key] for key in ("fieldRef", "resourceFieldRef") if key in item}


def _file(item: Json, content: bytes, default_mode: int) -> _File:
    mode = number(item, "mode")
    path = posixpath.normpath(text(item, "path"))
    return _File(path, content, default_mode if mode is None else mode)


def _mounted(files: tuple[_File, ...], mount_path: str, sub_path: str) -> Iterator[VolumeFile]:
    """With ``subPath`` only one file (at the mount path itself) or one folder is mounted."""
    # In a volume that is projected from several sources the later source wins.
    latest = {file.path: file for file in files}
    for file in latest.values():
        if sub_path == ".":
            place = posixpath.join(mount_path, file.path)
        elif file.path == sub_path:
            place = mount_path
        elif file.path.startswith(f"{sub_path}/"):
            place = posixpath.join(mount_path, file.path[len(sub_path) + 1 :])
        else:
            continue
        yield VolumeFile(place, file.content, file.mode)
