"""A pod's volumes: files of ConfigMaps and Secrets from their copies, the rest as the table says.

Pure. Fed by :mod:`.translate`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.references import CONFIG_MAP, SECRET, is_token_volume
from vk_provider.pods.tokens import wish
from vk_provider.pods.types import Json, ResolvedPod
from vk_provider_kubernetes import downward
from vk_provider_kubernetes.config import KubernetesConfig
from vk_provider_kubernetes.copies import Copies
from vk_provider_kubernetes.walk import Findings, sent

_TOKEN = "the home cluster's token, which admission added, is not given to another cluster"
_OBJECTS = {
    "configMap": (CONFIG_MAP, "name", "ConfigMapVolumeSource"),
    "secret": (SECRET, "secretName", "SecretVolumeSource"),
}
_PARTS = {
    "configMap": (CONFIG_MAP, "name", "ConfigMapProjection"),
    "secret": (SECRET, "name", "SecretProjection"),
}


def want(spec: Json, copies: Copies, *, tokens: bool = False) -> None:
    """Note every object that the pod's volumes show; with ``tokens`` what stands beside those."""
    for _, volume in mappings(spec, "volumes"):
        _want(volume, _OBJECTS, copies)
        if tokens or not is_token_volume(volume):
            for _, part in mappings(mapping(volume, "projected"), "sources"):
                _want(part, _PARTS, copies)


def _want(source: Json, known: dict[str, tuple[str, str, str]], copies: Copies) -> None:
    for field, (kind, name_field, _) in known.items():
        if field in source:
            reference = mapping(source, field)
            keys = [text(item, "key") for _, item in mappings(reference, "items")]
            copies.want(kind, text(reference, name_field), keys or None)


@dataclass(frozen=True, slots=True)
class Volumes:
    """The volumes of one pod."""

    pod: ResolvedPod
    config: KubernetesConfig
    copies: Copies
    findings: Findings

    def translated(self) -> list[dict[str, Any]]:
        """Each volume as the other cluster takes it."""
        found = []
        for index, volume in mappings(mapping(self.pod.pod, "spec"), "volumes"):
            path = f"spec.volumes[{index}]"
            if is_token_volume(volume) and not self.config.tokens:
                self.findings.note(path, _TOKEN)
            else:
                found.append(self._volume(volume, path))
        return found

    def _volume(self, volume: Json, path: str) -> dict[str, Any]:
        found = sent(volume, "Volume", path, self.findings)
        found |= dict(self._of_objects(volume, _OBJECTS, path))
        if "persistentVolumeClaim" in volume:
            found |= self._claim(mapping(volume, "persistentVolumeClaim"), path)
        if "downwardAPI" in volume:
            found |= self._downward(mapping(volume, "downwardAPI"), f"{path}.downwardAPI")
        if "projected" in volume:
            found["projected"] = self._projected(mapping(volume, "projected"), f"{path}.projected")
        return found

    def _of_objects(
        self, source: Json, known: dict[str, tuple[str, str, str]], path: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for field, (kind, name_field, type_name) in known.items():
            if field in source:
                reference = mapping(source, field)
                name = self.copies.name_of(kind, text(reference, name_field))
                kept = sent(reference, type_name, f"{path}.{field}", self.findings)
                yield field, {**kept, name_field: name}

    def _claim(self, claim: Json, path: str) -> dict[str, Any]:
        where = f"{path}.persistentVolumeClaim"
        kept = sent(claim, "PersistentVolumeClaimVolumeSource", where, self.findings)
        home = f"{self.pod.stamp.namespace}/{text(claim, 'claimName')}"
        remote = self.config.volume_claims.get(home)
        if remote is None:
            why = f"the backend's volumeClaims maps no claim of the other cluster to {home}"
            self.findings.refuse(f"{where}.claimName", why)
        return {"persistentVolumeClaim": {**kept, "claimName": remote}}

    def _downward(self, source: Json, path: str) -> dict[str, Any]:
        kept = sent(source, "DownwardAPIVolumeSource", path, self.findings)
        parts = downward.split(self.pod, source, path, self.copies, self.findings)
        return {"projected": {**kept, "sources": parts}}

    def _projected(self, projected: Json, path: str) -> dict[str, Any]:
        kept = sent(projected, "ProjectedVolumeSource", path, self.findings)
        sources: list[dict[str, Any]] = []
        for index, part in mappings(projected, "sources"):
            sources += self._part(part, f"{path}.sources[{index}]")
        return {**kept, "sources": sources}

    def _part(self, part: Json, path: str) -> list[dict[str, Any]]:
        sent(part, "VolumeProjection", path, self.findings)
        if "downwardAPI" in part:
            source, where = mapping(part, "downwardAPI"), f"{path}.downwardAPI"
            sent(source, "DownwardAPIProjection", where, self.findings)
            return downward.split(self.pod, source, where, self.copies, self.findings)
        if "serviceAccountToken" in part and self.config.tokens:
            return [self._token(mapping(part, "serviceAccountToken"))]
        found = dict(self._of_objects(part, _PARTS, path))
        return [found] if found else []

    def _token(self, source: Json) -> dict[str, Any]:
        """From the pod's own Secret, whose content follows when the token is renewed."""
        key = self.copies.token(wish(self.pod.pod, source))
        item = {"key": key, **{name: source[name] for name in ("path", "user") if name in source}}
        return {"secret": {"name": self.copies.tokens_name, "items": [item]}}
