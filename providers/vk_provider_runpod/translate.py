"""One resolved pod and one offer as the body of RunPod's create call, or every reason why not.

Pure: the same pod and offer give the same bytes. Nothing is dropped silently: what RunPod can't
do is refused by field path, what it does otherwise than a kubelet becomes a note.
Fed by ``provider``; rests on ``refusals``, ``volumes``, ``image`` and ``stamp``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from vk_provider import quantities
from vk_provider.faults import FieldProblem, UnsupportedFieldsError
from vk_provider.pods.reading import mapping, mappings, strings, text
from vk_provider.pods.start_wrapper import FILES_ENV
from vk_provider.pods.types import FieldNote, Offer, ResolvedContainer, ResolvedPod
from vk_provider_runpod import image, refusals, ssh_access, stamp, volumes
from vk_provider_runpod.config import RunPodConfig

HTTP_PORTS_ANNOTATION = "runpod.vk-provider.dev/http-ports"
CUDA_ANNOTATION = "runpod.vk-provider.dev/min-cuda-version"
REGISTRY_ANNOTATION = "runpod.vk-provider.dev/registry-id"
MAX_ENV = 50
MAX_HTTP_PORTS = 10
MAX_VCPU = 32
_PORT = re.compile("[0-9]{1,9}")
_SECRET_MARK = re.compile(r"\{\{\s*RUNPOD_SECRET", re.IGNORECASE)
_SECRET = "RunPod would put a secret of the account in place of {{ RUNPOD_SECRET_… }}"
_RAM_GB_PER_VCPU = {"c": 2, "g": 4, "m": 8}
_VENDORS = {"nvidia.com/gpu": "NVIDIA", "amd.com/gpu": "AMD"}


@dataclass(frozen=True, slots=True)
class Translation:
    """A create body with what should be known about it."""

    body: Mapping[str, Any]
    notes: tuple[FieldNote, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """What only the account can tell. ``registry``: the id of the credential for a private image;
    ``public_key``: whose owner may log in over SSH. ``places``: the data centres that it may be
    made in, in place of those that the offer and the pod leave open; empty: no others than theirs.
    ``claimed``: the network volume that the pod's claim stands for at home, see ``volumes``.
    """

    registry: str | None = None
    public_key: str | None = None
    places: tuple[str, ...] = ()
    claimed: str | None = None


NOTHING_KNOWN = Known()


def translate(
    pod: ResolvedPod, offer: Offer, config: RunPodConfig, known: Known = NOTHING_KNOWN
) -> Translation:
    """The create call's body.

    Raises:
        UnsupportedFieldsError: with every field that can't be honoured.
    """
    if not pod.containers:
        raise UnsupportedFieldsError([FieldProblem("spec.containers", "must hold one container")])
    container = pod.containers[0]
    stored = volumes.storage(pod, config, known.claimed)
    found = refusals.findings(pod)
    flavour = _cpu_flavour(offer, config)
    vcpus, compute_problems = _compute_size(pod, container, flavour)
    problems = [
        *(each for each in found if isinstance(each, FieldProblem)),
        *stored.problems,
        *refusals.ports(pod),
        *_port_problems(pod),
        *_image_problems(container),
        *_env_problems(container, _ours(pod, config, wrapped=stored.wrapped)),
        *compute_problems,
        *_gpu_problems(pod, _gpu_type(pod, offer, config)),
        *_annotation_problems(pod),
    ]
    if problems:
        raise UnsupportedFieldsError(list(dict.fromkeys(problems)))
    logs_in = known.public_key is not None and ssh_access.is_wanted(pod, config)
    starts_server = logs_in and ssh_access.is_started(pod, config)
    notes = [
        *(each for each in found if isinstance(each, FieldNote)),
        *stored.notes,
        *(ssh_access.notes(pod, config) if logs_in else ()),
    ]
    ports = list(_ports(pod))
    body = {
        "name": stamp.instance_name(pod.stamp),
        "image": image.normalised(container.image),
        **_arguments(container, _wrapper(stored.wrapped, starts_server)),
        "disk": stored.disk_gb,
        "env": {
            **_env(pod, container, wrapped=stored.wrapped),
            **(ssh_access.key_env(container.env, known.public_key or "") if logs_in else {}),
        },
        "ports": ssh_access.with_mapping(ports) if logs_in else ports,
        "cloud": config.cloud_type,
        **(
            _gpu(pod, _gpu_type(pod, offer, config), config)
            if pod.gpu_count
            else {"cpu": {"id": flavour, "vcpuCount": vcpus}}
        ),
        **_places(pod, offer, known.places),
        **({"mounts": stored.mounts} if stored.mounts else {}),
        **_registry(pod, config, known.registry),
    }
    return Translation(body, tuple(notes))


def _wrapper(writes_files: bool, starts_server: bool) -> str:
    """What runs before the pod's own command, and becomes it; empty where nothing does."""
    if not writes_files and not starts_server:
        return ""
    script = volumes.SCRIPT if writes_files else 'exec "$@"'
    return f"{ssh_access.START_SERVER}{script}" if starts_server else script


def _arguments(container: ResolvedContainer, wrapper: str) -> dict[str, str]:
    """``args`` as JSON, which overrides entrypoint and command word by word, without a shell."""
    command, args = list(container.command or ()), list(container.args or ())
    if wrapper:
        command, args = ["/bin/sh", "-c", wrapper, "vk-provider"], [*command, *args]
    if command:
        # An empty cmd could mean the image's own, which Kubernetes drops with the entrypoint.
        words = {"entrypoint": command, "cmd": args}
        if not args:
            words = {"entrypoint": command[:1], "cmd": command[1:]}
        return {"args": _dumped(words)}
    return {"args": _dumped({"cmd": args})} if args else {}


def _dumped(words: Mapping[str, list[str]]) -> str:
    return json.dumps(words, ensure_ascii=False, separators=(",", ":"))


def _env(pod: ResolvedPod, container: ResolvedContainer, *, wrapped: bool) -> dict[str, str]:
    files = {FILES_ENV: volumes.files_value(pod)} if wrapped else {}
    return {**container.env, **files, **stamp.stamp_env(pod.stamp, container.name)}


def _ours(pod: ResolvedPod, config: RunPodConfig, *, wrapped: bool) -> int:
    """How many variables we add to the pod's own."""
    env = pod.containers[0].env
    keys = [name for name in ssh_access.KEY_NAMES if name not in env]
    return len(stamp.KEYS) + wrapped + (len(keys) if ssh_access.is_wanted(pod, config) else 0)


def _env_problems(container: ResolvedContainer, ours: int) -> Iterator[FieldProblem]:
    path = f"{container.field_path}.env"
    if len(container.env) + ours > MAX_ENV:
        yield FieldProblem(
            path,
            f"found {len(container.env)} variables, allowed: {MAX_ENV - ours} "
            f"(RunPod takes {MAX_ENV}, {ours} are ours)",
        )
    for name, value in container.env.items():
        if name.startswith(stamp.PREFIX):
            yield FieldProblem(f"{path}[{name}]", f"names beginning with {stamp.PREFIX} are ours")
        if _SECRET_MARK.search(value):
            yield FieldProblem(f"{path}[{name}]", _SECRET)
    for field, words in (("command", container.command), ("args", container.args)):
        if any(map(_SECRET_MARK.search, words or ())):
            yield FieldProblem(f"{container.field_path}.{field}", _SECRET)


def _image_problems(container: ResolvedContainer) -> Iterator[FieldProblem]:
    if image.normalised(container.image) is None:
        found = f'found "{container.image}", allowed: {image.ALLOWED}'
        yield FieldProblem(f"{container.field_path}.image", found)


def _ports(pod: ResolvedPod) -> Iterator[str]:
    http = _http_ports(pod)
    seen: set[int] = set()
    for _, port in mappings(pod.containers[0].spec, "ports"):
        number = port.get("containerPort")
        if isinstance(number, int) and number not in seen:
            seen.add(number)
            named = text(port, "name") in ("http", "https") or text(port, "name").startswith(
                ("http-", "https-")
            )
            yield f"{number}/{'http' if number in http or named else 'tcp'}"
    # An image may serve a port that the manifest doesn't list.
    yield from (f"{number}/http" for number in http if number not in seen)


def _http_ports(pod: ResolvedPod) -> tuple[int, ...]:
    words = _annotation(pod, HTTP_PORTS_ANNOTATION).replace(",", " ").split()
    return tuple(dict.fromkeys(int(word) for word in words if _PORT.fullmatch(word)))


def _port_problems(pod: ResolvedPod) -> Iterator[FieldProblem]:
    http = [port for port in _ports(pod) if port.endswith("/http")]
    if len(http) > MAX_HTTP_PORTS:
        path = f"{pod.containers[0].field_path}.ports"
        yield FieldProblem(path, f"found {len(http)} HTTP ports, allowed: {MAX_HTTP_PORTS}")


def _annotation(pod: ResolvedPod, name: str) -> str:
    return strings(mapping(pod.pod, "metadata"), "annotations").get(name, "").strip()


def _annotation_problems(pod: ResolvedPod) -> Iterator[FieldProblem]:
    words = _annotation(pod, HTTP_PORTS_ANNOTATION).replace(",", " ").split()
    bad = [w for w in words if not (_PORT.fullmatch(w) and 0 < int(w) < 65_536)]
    if bad:
        path = f"metadata.annotations[{HTTP_PORTS_ANNOTATION}]"
        yield FieldProblem(path, f'found "{bad[0]}", allowed: port numbers with commas between')
    cuda = _annotation(pod, CUDA_ANNOTATION)
    numbers = cuda.split(".")
    if cuda and not (len(numbers) == 2 and all(n.isascii() and n.isdigit() for n in numbers)):
        path = f"metadata.annotations[{CUDA_ANNOTATION}]"
        yield FieldProblem(path, f'found "{cuda}", allowed: a version such as "12.8"')


def _gpu(
    pod: ResolvedPod, gpu_type: str | None, config: RunPodConfig
) -> dict[str, Mapping[str, Any]]:
    floor = _annotation(pod, CUDA_ANNOTATION) or config.min_cuda_version
    nvidia = _VENDORS.get(pod.gpu_resource or "") == "NVIDIA"
    # The count always goes along: without it the service answers "no capacity".
    wanted: dict[str, Any] = {"id": gpu_type, "count": pod.gpu_count}
    return {"gpu": {**wanted, **({"minCudaVersion": floor} if floor and nvidia else {})}}


def _gpu_type(pod: ResolvedPod, offer: Offer, config: RunPodConfig) -> str | None:
    """The offer's; where it names none, the first that the pod or the configuration wishes."""
    return next(
        iter((*filter(None, [offer.gpu_type]), *pod.hints.gpu_types, *config.gpu_types)), None
    )


def vcpus_of(pod: ResolvedPod, offer: Offer, config: RunPodConfig) -> int:
    """How many vCPUs a pod without a GPU gets: a power of two that covers its requests."""
    return _compute_size(pod, pod.containers[0], _cpu_flavour(offer, config))[0]


def _compute_size(
    pod: ResolvedPod, container: ResolvedContainer, flavour: str
) -> tuple[int, list[FieldProblem]]:
    if pod.gpu_count:
        return 0, []
    problems: list[FieldProblem] = []
    resources = mapping(container.spec, "resources")
    cores = _wanted(container, resources, "cpu", problems)
    ram = _wanted(container, resources, "memory", problems) / 10**9
    ratio = _RAM_GB_PER_VCPU.get(flavour[-1:], 2)
    needed = max(2, math.ceil(cores), math.ceil(ram / ratio))
    if needed > MAX_VCPU:
        sizes = f"{MAX_VCPU} vCPUs with {MAX_VCPU * ratio} GB"
        path = f"{container.field_path}.resources.requests"
        problems.append(FieldProblem(path, f"more than RunPod's largest {flavour}: {sizes}"))
    # vCPUs come in powers of two.
    return int(2 ** math.ceil(math.log2(needed))), problems


def _wanted(
    container: ResolvedContainer,
    resources: Mapping[str, Any],
    name: str,
    problems: list[FieldProblem],
) -> Fraction:
    for place in ("requests", "limits"):
        amount = mapping(resources, place).get(name)
        if amount is not None:
            try:
                return quantities.parse(str(amount))
            except ValueError as error:
                path = f"{container.field_path}.resources.{place}.{name}"
                problems.append(FieldProblem(path, str(error)))
    return Fraction(0)


def _gpu_problems(pod: ResolvedPod, gpu_type: str | None) -> Iterator[FieldProblem]:
    if not pod.gpu_count:
        return
    resource = pod.gpu_resource or ""
    path = f"{pod.containers[0].field_path}.resources.limits[{resource}]"
    vendor = _VENDORS.get(resource)
    if gpu_type is None:
        yield FieldProblem(path, "no GPU type is chosen: set gpuTypes in the configuration")
    elif (vendor == "AMD") != gpu_type.startswith("AMD"):
        yield FieldProblem(path, f'asks for {vendor}, but the offer is "{gpu_type}"')


def _cpu_flavour(offer: Offer, config: RunPodConfig) -> str:
    """The flavour that a CPU offer stands for, which is the first word of its id."""
    named = offer.id.partition(" ")[0]
    return named if named.startswith("cpu") else next(iter(config.cpu_types), "cpu5c")


def _places(pod: ResolvedPod, offer: Offer, known: Sequence[str]) -> dict[str, list[str]]:
    """RunPod treats data centres as a hard constraint; the pod's own wish narrows an open offer."""
    places = [offer.data_center] if offer.data_center else list(pod.hints.data_centers)
    places = list(known) or places
    return {"dataCenterIds": [place.upper() for place in places]} if places else {}


def _registry(pod: ResolvedPod, config: RunPodConfig, registry: str | None) -> dict[str, str]:
    chosen = _annotation(pod, REGISTRY_ANNOTATION) or registry or config.container_registry_auth_id
    return {"registry": chosen} if chosen else {}
