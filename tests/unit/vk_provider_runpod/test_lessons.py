"""What an earlier bridge to RunPod got wrong, each as a rule that must hold here.

The bridge lost instances, billed twice, and showed statuses that nobody had observed. The rules
that need a service are in ``tests/integration/runpod``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.memory import Memory
from vk_provider_runpod.observe import Remembered, observe, remember
from vk_provider_runpod.stamp import Mark
from vk_provider_runpod.translate import translate

from vk_provider.faults import UnsupportedFieldsError
from vk_provider.pods.references import ObjectKey
from vk_provider.pods.types import InstancePhase, Offer, Running
from vk_provider.testing.builders import CLUSTER_ID, make_container, make_resolved_pod

Make = Callable[..., dict[str, Any]]
NOW = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
OFFER = Offer("NVIDIA L40S x2 SECURE", "NVIDIA L40S", 2)


def body_of(config: RunPodConfig, **container: Any) -> Any:
    """The create body of a pod for two GPUs."""
    fields = {"resources": {"limits": {"nvidia.com/gpu": "2"}}} | container
    pod = make_resolved_pod(containers=[make_container("web", **fields)])
    return translate(pod, OFFER, config).body


def test_command_and_args_are_sent(config: RunPodConfig) -> None:
    """They were dropped."""
    body = body_of(config, command=["serve"], args=["-v"])

    assert json.loads(body["args"]) == {"entrypoint": ["serve"], "cmd": ["-v"]}


def test_the_gpu_count_is_sent(config: RunPodConfig) -> None:
    """It was dropped."""
    assert body_of(config)["gpu"]["count"] == 2


def test_the_disk_follows_the_pod(config: RunPodConfig) -> None:
    """It was fixed."""
    limits = {"nvidia.com/gpu": "2", "ephemeral-storage": "100G"}

    assert body_of(config, resources={"limits": limits})["disk"] == 120


def test_env_names_and_values_arrive_as_they_are(config: RunPodConfig) -> None:
    """Names with _PORT_ were filtered out, line ends were escaped, empty values were dropped."""
    env = [
        {"name": "MY_PORT_80_TCP", "value": "a\nb"},
        {"name": "EMPTY", "value": ""},
    ]

    sent = body_of(config, env=env)["env"]

    assert (sent["MY_PORT_80_TCP"], sent["EMPTY"]) == ("a\nb", "")


def test_field_references_are_resolved(config: RunPodConfig) -> None:
    """They were dropped."""
    source = {"fieldRef": {"fieldPath": "metadata.name"}}

    assert body_of(config, env=[{"name": "ME", "valueFrom": source}])["env"]["ME"] == "app-1"


def test_more_containers_and_init_containers_are_refused(config: RunPodConfig) -> None:
    """They were dropped without a word."""
    pod = make_resolved_pod(
        containers=[make_container("a"), make_container("b")],
        initContainers=[make_container("c")],
    )

    with pytest.raises(UnsupportedFieldsError) as raised:
        translate(pod, Offer("cpu5c SECURE"), config)

    paths = {problem.path for problem in raised.value.problems}
    assert paths == {"spec.containers[1]", "spec.initContainers[0]"}


def test_secret_volumes_are_files_or_refused(config: RunPodConfig) -> None:
    """They became environment variables."""
    key = ObjectKey("Secret", "default", "login")
    mount = {"name": "s", "mountPath": "/s"}
    pod = make_resolved_pod(
        containers=[make_container(volumeMounts=[mount])],
        volumes=[{"name": "s", "secret": {"secretName": "login"}}],
        objects={key: {"stringData": {"TOKEN": "x"}}},
    )

    with pytest.raises(UnsupportedFieldsError):
        translate(pod, Offer("cpu5c SECURE"), config)


def test_a_port_number_says_nothing_about_its_protocol(config: RunPodConfig) -> None:
    """80, 8080 and others were taken for HTTP."""
    ports = [{"containerPort": 8080}, {"containerPort": 9999, "name": "http"}]

    assert body_of(config, ports=ports)["ports"] == ["8080/tcp", "9999/http"]


def test_containers_have_the_names_of_the_pod(config: RunPodConfig, backend_pod: Make) -> None:
    """They were all called alike, and kubectl found none."""
    memory = Memory(CLUSTER_ID)
    pod = backend_pod(env=body_of(config)["env"], runtime={"uptime": 5})

    memory.take([pod], NOW)

    assert observe(pod, memory.known["abc123"]).containers[0].name == "web"


def test_nothing_is_invented(backend_pod: Make, mark: Mark) -> None:
    """A pod IP of 10.0.0.2 and a start an hour ago were."""
    pod = backend_pod(runtime={"uptime": 5})

    seen = observe(pod, remember(Remembered(mark), pod, NOW))

    assert seen.addresses == ()
    assert seen.containers[0].state == Running(datetime(2026, 6, 1, 12, 4, 55, tzinfo=UTC))


def test_an_exit_code_is_unknown_and_not_a_failure(backend_pod: Make, mark: Mark) -> None:
    """It was read from a field that never existed, and so was always a failure."""
    pod = backend_pod(status="EXITED")

    seen = observe(pod, Remembered(mark, NOW))

    assert seen.phase is InstancePhase.ENDED
    assert getattr(seen.containers[0].state, "exit_code", 0) is None


def test_pods_of_the_account_are_not_adopted(backend_pod: Make) -> None:
    """All of them were, into a namespace and a node that weren't theirs."""
    strangers = [backend_pod(id="a", env={}), backend_pod(id="b", env={"POD": "x"})]

    assert Memory(CLUSTER_ID).take(strangers, NOW) == []
