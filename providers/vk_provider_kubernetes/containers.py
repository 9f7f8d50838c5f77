"""A pod's containers as the other cluster takes them.

With tokens handed on, the mounts that admission added at home go along, and containers find home's
API server where clients look for it: the other cluster's kubelet would name its own.
Pure. Fed by :mod:`.translate`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.tokens import wishes
from vk_provider.pods.types import Json, ResolvedContainer, ResolvedPod
from vk_provider_kubernetes import environment
from vk_provider_kubernetes.config import HomeApi, KubernetesConfig
from vk_provider_kubernetes.copies import Copies
from vk_provider_kubernetes.walk import Findings, sent

_FIELDS = ("containers", "initContainers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Containers:
    """The containers of one pod."""

    pod: ResolvedPod
    config: KubernetesConfig
    copies: Copies
    findings: Findings

    def translated(
        self, containers: Iterable[ResolvedContainer], type_name: str = "Container"
    ) -> list[dict[str, Any]]:
        """Each of them; ``type_name`` is the API's name of their kind."""
        return [self._one(each, type_name) for each in containers]

    def _one(self, container: ResolvedContainer, type_name: str) -> dict[str, Any]:
        spec = container.spec
        if self.config.tokens:
            spec = {**spec, **self._mounts(container.name)}
        found = sent(spec, type_name, container.field_path, self.findings)
        found |= environment.environment(container, self.copies, self.findings)
        told = self._home_api(found.get("env", []))
        return {**found, "env": told} if told else found

    def _mounts(self, name: str) -> Json:
        """The mounts of the pod itself: resolving leaves out those of the injected token."""
        spec = mapping(self.pod.pod, "spec")
        for field in _FIELDS:
            for _, each in mappings(spec, field):
                if text(each, "name") == name and "volumeMounts" in each:
                    return {"volumeMounts": each["volumeMounts"]}
        return {}

    def _home_api(self, variables: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The variables, after those about home's API server; what the pod sets itself stands."""
        api = self.config.home_api
        if not self.config.tokens or api is None or not wishes(self.pod.pod):
            return variables
        own = {each["name"] for each in variables}
        ours = [each for each in _service_variables(api) if each["name"] not in own]
        return [*ours, *variables]


def _service_variables(api: HomeApi) -> list[dict[str, Any]]:
    host = f"[{api.host}]" if ":" in api.host else api.host
    values = {
        "KUBERNETES_SERVICE_HOST": api.host,
        "KUBERNETES_SERVICE_PORT": str(api.port),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(api.port),
        "KUBERNETES_PORT": f"tcp://{host}:{api.port}",
    }
    return [{"name": name, "value": value} for name, value in values.items()]
