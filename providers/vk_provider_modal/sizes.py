"""A pod's resources in Modal's units: physical cores, MiB, one GPU string.

Pure. A Kubernetes CPU is one hardware thread, a core of Modal's two of them, so CPUs are halved.
Fed by ``translate``; feeds the request.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from vk_provider import quantities
from vk_provider.faults import FieldProblem
from vk_provider.pods.reading import mapping
from vk_provider.pods.types import ResolvedContainer, ResolvedPod
from vk_provider_modal.gpus import gpu_type

THREADS_PER_CORE = 2
_MIB = 2**20
_NVIDIA = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Sizes:
    """``cpu`` in cores and ``memory`` in MiB: (request, limit), None where the pod has none."""

    cpu: tuple[float | None, float | None]
    memory: tuple[int | None, int | None]
    gpu: str | None
    problems: tuple[FieldProblem, ...]


def sizes(pod: ResolvedPod, wanted_type: str | None) -> Sizes:
    """Everything that decides how large the sandbox is."""
    container = pod.containers[0]
    problems: list[FieldProblem] = []
    cpu = [_amount(container, place, "cpu", problems) for place in ("requests", "limits")]
    memory = [_amount(container, place, "memory", problems) for place in ("requests", "limits")]
    problems += _gpu_problems(pod, wanted_type)
    return Sizes(
        (_cores(cpu[0]), _cores(cpu[1])),
        (_mib(memory[0]), _mib(memory[1])),
        _gpu(pod, wanted_type),
        tuple(problems),
    )


def _amount(
    container: ResolvedContainer, place: str, name: str, problems: list[FieldProblem]
) -> Fraction | None:
    found = mapping(mapping(container.spec, "resources"), place).get(name)
    if found is None:
        return None
    try:
        return quantities.parse(str(found)) or None
    except ValueError as error:
        path = f"{container.field_path}.resources.{place}.{name}"
        problems.append(FieldProblem(path, str(error)))
        return None


def _cores(amount: Fraction | None) -> float | None:
    """Rounded up to a thousandth, which is the finest that Modal takes."""
    return None if amount is None else math.ceil(amount * 1000 / THREADS_PER_CORE) / 1000


def _mib(amount: Fraction | None) -> int | None:
    # A float would silently be sent as nothing at all.
    return None if amount is None else math.ceil(amount / _MIB)


def _gpu(pod: ResolvedPod, name: str | None) -> str | None:
    if not pod.gpu_count or name is None:
        return None
    return name if pod.gpu_count == 1 else f"{name}:{pod.gpu_count}"


def _gpu_problems(pod: ResolvedPod, name: str | None) -> Iterator[FieldProblem]:
    if not pod.gpu_count:
        return
    resource = pod.gpu_resource or ""
    path = f"{pod.containers[0].field_path}.resources.limits[{resource}]"
    if resource != _NVIDIA:
        yield FieldProblem(path, f"Modal has no such GPU; allowed: {_NVIDIA}")
    elif name is None:
        yield FieldProblem(path, "no GPU type is chosen: set gpuTypes in the configuration")
    elif pod.gpu_count > gpu_type(name).most:
        yield FieldProblem(
            path, f"found {pod.gpu_count}, allowed: up to {gpu_type(name).most} {name} per sandbox"
        )
