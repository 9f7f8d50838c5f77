"""A pod in the fake service's terms. PURE: what `explain` shows is what create sends.

A pod's annotations steer its instance, so that tests and benchmarks across a process boundary can:
``fake.vk-provider.dev/start-after-seconds``, ``run-seconds``, ``exit-code``,
``vanish-after-seconds``, ``ended-by`` (``Lost``, ``Preempted``, ``Image``: what ends it after
``run-seconds``), ``log-every-seconds``, ``log-request`` (``true``: each container first writes, as
JSON, what it was asked to run), ``out-of-capacity`` (``true``), ``rejected`` (why),
``unsupported`` (field paths, comma-separated).
Fed by :mod:`.fake`; feeds :mod:`.fake_service`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from vk_provider.faults import FieldProblem, UnsupportedFieldsError
from vk_provider.pods.masking import MASK, masked
from vk_provider.pods.reading import mapping, strings
from vk_provider.pods.types import EndCause, Json, Offer, ResolvedContainer, ResolvedPod
from vk_provider.testing.fake_config import FakeConfig
from vk_provider.testing.fake_instance import Plan

PREFIX = "fake.vk-provider.dev/"


def request_for(pod: ResolvedPod, offer: Offer) -> dict[str, Any]:
    """The body of the create call. Raises ``UnsupportedFieldsError``."""
    problems = [*pod.unresolvable, *_asked_for(pod), *_numbers(pod, FakeConfig())[1]]
    problems += _cause(pod)
    if problems:
        raise UnsupportedFieldsError(problems)
    stamp = pod.stamp
    return {
        "stamp": {
            "cluster": stamp.cluster_id,
            "node": stamp.node_name,
            "namespace": stamp.namespace,
            "name": stamp.pod_name,
            "uid": stamp.pod_uid,
        },
        "offer": offer.id,
        "gpuCount": pod.gpu_count,
        "initContainers": [_container(each) for each in pod.init_containers],
        "containers": [_container(each) for each in pod.containers],
        "registryLogins": [
            {"registry": each.registry, "username": each.username, "password": each.password}
            for each in pod.pull_credentials
        ],
    }


def explained(pod: ResolvedPod, offer: Offer) -> dict[str, Any]:
    """The same body, with every secret value masked."""
    request = masked(request_for(pod, offer), pod.secret_values)
    logins = [{**login, "password": MASK} for login in request["registryLogins"]]
    return {**request, "registryLogins": logins}


def plan_for(pod: ResolvedPod, config: FakeConfig) -> Plan:
    """How the life of the pod's instance is to go."""
    numbers, _ = _numbers(pod, config)
    every = (*pod.init_containers, *pod.containers)
    cause, shows = wish(pod, "ended-by"), wish(pod, "log-request") == "true"
    return Plan(
        containers=tuple(each.name for each in pod.containers),
        init={
            each.name: each.spec.get("restartPolicy") == "Always" for each in pod.init_containers
        },
        images={each.name: each.image for each in every},
        start_after_seconds=numbers["start-after-seconds"] or 0.0,
        run_seconds=numbers["run-seconds"],
        exit_code=int(numbers["exit-code"] or 0),
        log_every_seconds=numbers["log-every-seconds"],
        ended_by=None if cause is None else EndCause(cause),
        vanish_after_seconds=numbers["vanish-after-seconds"],
        openings={each.name: orjson.dumps(_container(each)) for each in every if shows},
    )


def wish(pod: ResolvedPod, name: str) -> str | None:
    """The value of one of our annotations on the pod."""
    return strings(mapping(pod.pod, "metadata"), "annotations").get(PREFIX + name)


def _container(container: ResolvedContainer) -> Json:
    return {
        "name": container.name,
        "image": container.image,
        "command": container.command,
        "args": container.args,
        "env": dict(container.env),
        "files": {
            file.path: file.content.decode("utf-8", "backslashreplace") for file in container.files
        },
    }


def _asked_for(pod: ResolvedPod) -> list[FieldProblem]:
    paths = (wish(pod, "unsupported") or "").split(",")
    return [
        FieldProblem(path.strip(), "the annotation asks for this refusal")
        for path in paths
        if path.strip()
    ]


def _cause(pod: ResolvedPod) -> list[FieldProblem]:
    value = wish(pod, "ended-by")
    if value is None or value in tuple(EndCause):
        return []
    path = f"metadata.annotations[{PREFIX}ended-by]"
    return [FieldProblem(path, f'found "{value}", allowed: {", ".join(EndCause)}')]


def _numbers(
    pod: ResolvedPod, config: FakeConfig
) -> tuple[Mapping[str, float | None], list[FieldProblem]]:
    """The annotations that are numbers, over the configuration's; and what is wrong with them."""
    numbers: dict[str, float | None] = {
        "start-after-seconds": config.start_after_seconds,
        "run-seconds": config.run_seconds,
        "exit-code": config.exit_code,
        "log-every-seconds": None,
        "vanish-after-seconds": None,
    }
    problems: list[FieldProblem] = []
    for name in numbers:
        value = wish(pod, name)
        if value is None:
            continue
        if not value.replace(".", "", 1).isdecimal():
            path = f"metadata.annotations[{PREFIX}{name}]"
            problems.append(FieldProblem(path, f'found "{value}", allowed: a number'))
            continue
        numbers[name] = float(value)
    return numbers, problems
