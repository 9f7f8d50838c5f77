"""One resolved pod and one offer as what Modal is asked for, or every reason why not.

Pure: the same pod and offer give the same request. Nothing is dropped silently: what Modal can't
do is refused by field path, what it does otherwise than a kubelet becomes a note. The request is
plain JSON; ``client`` says it in the SDK's words.
Fed by ``provider``; rests on ``refusals``, ``volumes``, ``sizes`` and ``stamp``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vk_provider.faults import FieldProblem, UnsupportedFieldsError
from vk_provider.pods.pull_secrets import credential_for
from vk_provider.pods.reading import mapping, mappings, number, strings, text
from vk_provider.pods.start_wrapper import FILES_ENV
from vk_provider.pods.types import FieldNote, Offer, ResolvedContainer, ResolvedPod
from vk_provider_modal import refusals, stamp, volumes
from vk_provider_modal.config import ModalConfig
from vk_provider_modal.sizes import Sizes, sizes

H2_PORTS_ANNOTATION = "modal.vk-provider.dev/h2-ports"
TCP_PORTS_ANNOTATION = "modal.vk-provider.dev/tcp-ports"
HTTP_PORTS_ANNOTATION = "modal.vk-provider.dev/http-ports"
_PORT_KINDS = {
    H2_PORTS_ANNOTATION: "h2Ports",
    TCP_PORTS_ANNOTATION: "unencryptedPorts",
    HTTP_PORTS_ANNOTATION: "encryptedPorts",
}
MOST_ARGUMENT_BYTES = 2**16
DEADLINE_SLACK_SECONDS = 60
"""A sandbox outlives its pod's own deadline by so much more than the margin in which it would be
taken back for its time limit, so that the deadline is told as such."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Translation:
    """A request with what should be known about it."""

    request: Mapping[str, Any]
    notes: tuple[FieldNote, ...] = ()


def translate(pod: ResolvedPod, offer: Offer, config: ModalConfig) -> Translation:
    """What Modal is asked for.

    Raises:
        UnsupportedFieldsError: with every field that can't be honoured.
    """
    if not pod.containers:
        raise UnsupportedFieldsError([FieldProblem("spec.containers", "must hold one container")])
    container = pod.containers[0]
    stored = volumes.storage(pod, config)
    found = refusals.findings(pod)
    gpu_type = _gpu_type(pod, offer, config)
    size = sizes(pod, gpu_type)
    problems = [
        *(each for each in found if isinstance(each, FieldProblem)),
        *stored.problems,
        *_image_problems(container),
        *_argument_problems(container),
        *_env_problems(container),
        *_port_problems(pod),
        *size.problems,
    ]
    if problems:
        raise UnsupportedFieldsError(list(dict.fromkeys(problems)))
    notes = [each for each in found if isinstance(each, FieldNote)]
    request = _request(pod, offer, config, stored, size)
    return Translation(request, (*notes, *stored.notes, *_own_notes(pod, config)))


def _request(
    pod: ResolvedPod, offer: Offer, config: ModalConfig, stored: volumes.Storage, size: Sizes
) -> Mapping[str, Any]:
    container = pod.containers[0]
    ports = _ports(pod)
    all_ports = tuple(sorted(port for each in ports.values() for port in each))
    args = _arguments(container, wrapped=stored.wrapped)
    return {
        "name": stamp.sandbox_name(pod.stamp.pod_uid),
        "tags": stamp.stamp_tags(pod.stamp, container.name, offer, all_ports),
        "image": _image(pod, config, is_wrapped=stored.wrapped),
        **({"args": args} if args else {}),
        "env": _env(pod, wrapped=stored.wrapped),
        **({"workdir": container.spec["workingDir"]} if container.spec.get("workingDir") else {}),
        **({"gpu": size.gpu} if size.gpu else {}),
        **_amounts("cpu", size.cpu),
        **_amounts("memory", size.memory),
        "timeout": _timeout(pod, config),
        **{kind: list(each) for kind, each in ports.items() if each},
        **({"volumes": stored.volumes} if stored.volumes else {}),
        **_place(pod, offer, config),
        **_inbound(config, is_open=bool(all_ports)),
    }


def _image(pod: ResolvedPod, config: ModalConfig, *, is_wrapped: bool) -> Mapping[str, Any]:
    container = pod.containers[0]
    login = credential_for(container.image, pod.pull_credentials)
    replaces = container.command is not None or is_wrapped
    is_fresh = config.force_build and text(container.spec, "imagePullPolicy") == "Always"
    return {
        "reference": container.image.strip(),
        # Modal appends the arguments to the image's own entrypoint, which a command replaces.
        **({"dockerfile": ["ENTRYPOINT []"]} if replaces else {}),
        **({"login": {"username": login.username, "password": login.password}} if login else {}),
        **({"forceBuild": True} if is_fresh else {}),
    }


def _arguments(container: ResolvedContainer, *, wrapped: bool) -> list[str]:
    words = [*(container.command or ()), *(container.args or ())]
    return ["/bin/sh", "-c", volumes.SCRIPT, "vk-provider", *words] if wrapped else words


def _env(pod: ResolvedPod, *, wrapped: bool) -> dict[str, str]:
    files = {FILES_ENV: volumes.files_value(pod)} if wrapped else {}
    return {**pod.containers[0].env, **files}


def _amounts(
    name: str, amounts: tuple[float | None, float | None] | tuple[int | None, int | None]
) -> dict[str, Any]:
    """A request alone, or request and limit; a limit alone is both, as in Kubernetes."""
    request, limit = amounts
    if limit is None:
        return {} if request is None else {name: request}
    return {name: [limit if request is None else request, limit]}


def _timeout(pod: ResolvedPod, config: ModalConfig) -> int:
    deadline = number(mapping(pod.pod, "spec"), "activeDeadlineSeconds")
    if deadline is None:
        return config.max_lifetime_seconds
    # A margin is stretched to its double at most.
    spare = 2 * config.expiry_margin_seconds + DEADLINE_SLACK_SECONDS
    return min(config.max_lifetime_seconds, deadline + spare)


def _place(pod: ResolvedPod, offer: Offer, config: ModalConfig) -> dict[str, Any]:
    regions = [offer.data_center] if offer.data_center else list(pod.hints.data_centers)
    return {
        **({"region": [region.lower() for region in regions]} if regions else {}),
        **({"cloud": config.cloud} if config.cloud else {}),
    }


def _inbound(config: ModalConfig, *, is_open: bool) -> dict[str, Any]:
    if config.inbound_cidrs is None or not is_open:
        return {}
    return {"inboundCidrs": list(config.inbound_cidrs)}


def _gpu_type(pod: ResolvedPod, offer: Offer, config: ModalConfig) -> str | None:
    """The offer's; where it names none, the first that the pod or the configuration wishes."""
    names = (*filter(None, [offer.gpu_type]), *pod.hints.gpu_types, *config.gpu_types)
    return next((name.upper() for name in names), None)


def _ports(pod: ResolvedPod) -> dict[str, tuple[int, ...]]:
    """The tunnels by kind. TLS unless an annotation asks for HTTP/2 or plain TCP."""
    kinds = {port: kind for name, kind in _PORT_KINDS.items() for port in _port_numbers(pod, name)}
    for _, port in mappings(pod.containers[0].spec, "ports"):
        found = number(port, "containerPort")
        if found:
            kinds.setdefault(found, "encryptedPorts")
    return {
        kind: tuple(port for port, each in kinds.items() if each == kind)
        for kind in ("encryptedPorts", "h2Ports", "unencryptedPorts")
    }


def _words(pod: ResolvedPod, name: str) -> list[str]:
    found = strings(mapping(pod.pod, "metadata"), "annotations").get(name, "")
    return found.replace(",", " ").split()


def _port_numbers(pod: ResolvedPod, name: str) -> Iterator[int]:
    yield from (int(word) for word in _words(pod, name) if _is_port(word))


def _is_port(word: str) -> bool:
    return word.isascii() and word.isdecimal() and 0 < int(word) < 65_536


def _port_problems(pod: ResolvedPod) -> Iterator[FieldProblem]:
    for name in _PORT_KINDS:
        for word in _words(pod, name):
            if not _is_port(word):
                found = f'found "{word}", allowed: port numbers with commas between'
                yield FieldProblem(f"metadata.annotations[{name}]", found)


def _image_problems(container: ResolvedContainer) -> Iterator[FieldProblem]:
    # It becomes a line of a Dockerfile, where a second word would mean something.
    if not _IMAGE.fullmatch(container.image.strip()):
        found = f'found "{container.image}", allowed: [HOST[:PORT]/]PATH[:TAG][@sha256:DIGEST]'
        yield FieldProblem(f"{container.field_path}.image", found)


def _argument_problems(container: ResolvedContainer) -> Iterator[FieldProblem]:
    words = [*(container.command or ()), *(container.args or ())]
    size = sum(len(word.encode()) for word in words)
    if size > MOST_ARGUMENT_BYTES:
        path = f"{container.field_path}.{'args' if container.args else 'command'}"
        yield FieldProblem(path, f"found {size} bytes, allowed: {MOST_ARGUMENT_BYTES}")


def _env_problems(container: ResolvedContainer) -> Iterator[FieldProblem]:
    for name in container.env:
        if not _VARIABLE.fullmatch(name):
            path = f"{container.field_path}.env[{name}]"
            yield FieldProblem(path, "Modal takes letters, digits and '_' in names only")


def _own_notes(pod: ResolvedPod, config: ModalConfig) -> Iterator[FieldNote]:
    container = pod.containers[0]
    hours = f"{_timeout(pod, config) / 3600:g}"
    yield FieldNote(
        "spec", f"Modal ends a sandbox after {hours} h; the pod is failed and replaced before that"
    )
    if any(_ports(pod).values()):
        who = (
            "reachable from everywhere" if config.inbound_cidrs is None else "open to inboundCidrs"
        )
        yield FieldNote(f"{container.field_path}.ports", f"each becomes a tunnel, {who}")
    if text(container.spec, "imagePullPolicy") == "Always" and not config.force_build:
        yield FieldNote(
            f"{container.field_path}.imagePullPolicy",
            "Modal pulls a tag once and keeps it; pin a digest, or set forceBuild",
        )
