"""A pod in the process provider's terms. PURE: what `explain` shows is what create sends.

Fed by :mod:`.process`; feeds :mod:`.process_service`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from vk_provider.faults import FieldProblem, UnsupportedFieldsError
from vk_provider.pods.expansion import expand
from vk_provider.pods.masking import masked
from vk_provider.pods.reading import mapping, mappings, number, text
from vk_provider.pods.types import (
    Explanation,
    FieldNote,
    ResolvedContainer,
    ResolvedPod,
    VolumeFile,
)
from vk_provider.testing.process_config import ProcessConfig
from vk_provider.testing.process_plan import ContainerPlan, Plan, Role
from vk_provider.testing.process_refusals import findings

WAITING_COMMAND = ("tail", "-f", "/dev/null")
"""What a container without any command runs: an image whose entrypoint just waits."""

_DEFAULT_GRACE_SECONDS = 30


def explained(pod: ResolvedPod, config: ProcessConfig) -> Explanation:
    """The create call's body, masked, and what has no effect. Raises UnsupportedFieldsError."""
    request = plan_for(pod, config).request(pod.stamp)
    notes = [each for each in findings(pod) if isinstance(each, FieldNote)]
    return Explanation(masked(request, pod.secret_values), notes)


def plan_for(pod: ResolvedPod, config: ProcessConfig) -> Plan:
    """What the pod's instance is to run. Raises ``UnsupportedFieldsError`` with all problems."""
    problems = [each for each in findings(pod) if isinstance(each, FieldProblem)]
    if problems:
        raise UnsupportedFieldsError(problems)
    spec = mapping(pod.pod, "spec")
    shared = [
        text(volume, "name")
        for _, volume in mappings(spec, "volumes")
        if isinstance(volume.get("emptyDir"), Mapping)
    ]
    grace = number(spec, "terminationGracePeriodSeconds")
    inits = tuple(
        _container(each, _init_role(each), config, shared) for each in pod.init_containers
    )
    mains = tuple(_container(each, Role.MAIN, config, shared) for each in pod.containers)
    return Plan(
        containers=inits + mains,
        grace_seconds=_DEFAULT_GRACE_SECONDS if grace is None else grace,
        map_ports=config.map_ports,
    )


def _init_role(container: ResolvedContainer) -> Role:
    return Role.SIDECAR if container.spec.get("restartPolicy") == "Always" else Role.INIT


def _container(
    container: ResolvedContainer, role: Role, config: ProcessConfig, shared: list[str]
) -> ContainerPlan:
    spec = container.spec
    ports = (number(port, "containerPort") for _, port in mappings(spec, "ports"))
    return ContainerPlan(
        name=container.name,
        image=container.image,
        role=role,
        argv=_argv(container, config),
        env={"PATH": config.path} | dict(container.env),
        files=tuple(_below_root(file) for file in container.files),
        folders=_folders(container, shared),
        working_dir=_absolute(text(spec, "workingDir")),
        stdin=spec.get("stdin") is True,
        stdin_once=spec.get("stdinOnce") is True,
        tty=spec.get("tty") is True,
        ports=tuple(port for port in ports if port is not None),
    )


def _argv(container: ResolvedContainer, config: ProcessConfig) -> tuple[str, ...]:
    entrypoint = container.command or config.entrypoint(container.image)
    return (*entrypoint, *(container.args or ())) or WAITING_COMMAND


def _folders(container: ResolvedContainer, shared: list[str]) -> dict[str, str]:
    found = {}
    for _, mount in mappings(container.spec, "volumeMounts"):
        volume = text(mount, "name")
        if volume in shared:
            sub = text(mount, "subPath") or expand(text(mount, "subPathExpr"), container.env)
            found[_absolute(text(mount, "mountPath"))] = f"{volume}{_absolute(sub)}".rstrip("/")
    return found


def _below_root(file: VolumeFile) -> VolumeFile:
    return VolumeFile(_absolute(file.path), file.content, file.mode)


def _absolute(path: str) -> str:
    """A path that can't leave the container's folder."""
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")
