"""The create call's body, rule by rule. Whole bodies are golden files."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.stamp import KEYS
from vk_provider_runpod.translate import Known, translate

from vk_provider.faults import UnsupportedFieldsError
from vk_provider.pods.types import IMPLICIT_OFFER, Offer, PlacementHints, ResolvedPod
from vk_provider.testing.builders import make_container, make_resolved_pod

L40S = Offer("NVIDIA L40S x1 SECURE", "NVIDIA L40S", 1)
CPU = Offer("cpu5c SECURE")
HTTP = "runpod.vk-provider.dev/http-ports"
CUDA = "runpod.vk-provider.dev/min-cuda-version"


def gpu_pod(
    resource: str = "nvidia.com/gpu",
    annotations: dict[str, str] | None = None,
    count: int = 1,
    **container: Any,
) -> ResolvedPod:
    """A pod that asks for GPUs; ``container`` fields are laid over its container."""
    fields = {"resources": {"limits": {resource: str(count)}}} | container
    metadata = {"annotations": annotations or {}}
    return make_resolved_pod(containers=[make_container(**fields)], metadata=metadata)


def cpu_pod(**requests: str) -> ResolvedPod:
    """A pod without GPUs."""
    return make_resolved_pod(containers=[make_container(resources={"requests": requests})])


def refused(pod: ResolvedPod, offer: Offer, config: RunPodConfig) -> dict[str, str]:
    """The problems of a pod that can't be translated, by path."""
    with pytest.raises(UnsupportedFieldsError) as raised:
        translate(pod, offer, config)
    return {problem.path: problem.message for problem in raised.value.problems}


def test_the_gpu_is_the_offers_and_its_count_is_always_sent(config: RunPodConfig) -> None:
    """Without a count RunPod answers "no capacity"."""
    body = translate(gpu_pod(), L40S, config).body

    assert body["gpu"] == {"id": "NVIDIA L40S", "count": 1}
    assert "cpu" not in body


def test_an_offer_without_a_type_takes_the_pods_wish_first(config: RunPodConfig) -> None:
    """Then the configuration's first."""
    pod = gpu_pod()
    wished = replace(pod, hints=PlacementHints(gpu_types=("NVIDIA L4",)))

    assert translate(wished, IMPLICIT_OFFER, config).body["gpu"]["id"] == "NVIDIA L4"
    assert translate(pod, IMPLICIT_OFFER, config).body["gpu"]["id"] == "NVIDIA L40S"


def test_no_gpu_type_at_all_is_refused(config: RunPodConfig) -> None:
    """A body without one would only cost a call."""
    problems = refused(gpu_pod(), IMPLICIT_OFFER, replace(config, gpu_types=()))

    path = "spec.containers[0].resources.limits[nvidia.com/gpu]"
    assert problems == {path: "no GPU type is chosen: set gpuTypes in the configuration"}


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu"])
def test_the_vendor_must_be_the_one_asked_for(config: RunPodConfig, resource: str) -> None:
    """A CUDA image on an AMD card would start, fail, and be billed."""
    other = "NVIDIA L4" if resource == "amd.com/gpu" else "AMD Instinct MI300X OAM"

    problems = refused(gpu_pod(resource), Offer("x", other, 1), config)

    assert list(problems) == [f"spec.containers[0].resources.limits[{resource}]"]


def test_the_cuda_floor_is_the_pods_or_the_configurations(config: RunPodConfig) -> None:
    """And only for NVIDIA."""
    floor = replace(config, min_cuda_version="12.4")
    amd = Offer("x", "AMD Instinct MI300X OAM", 1)

    assert translate(gpu_pod(), L40S, floor).body["gpu"]["minCudaVersion"] == "12.4"
    own = gpu_pod(annotations={CUDA: "12.8"})
    assert translate(own, L40S, floor).body["gpu"]["minCudaVersion"] == "12.8"
    assert "minCudaVersion" not in translate(gpu_pod("amd.com/gpu"), amd, floor).body["gpu"]


@pytest.mark.parametrize("value", ["12", "12.x", "latest", "1.2.3"])
def test_a_malformed_cuda_version_is_refused(config: RunPodConfig, value: str) -> None:
    """By the annotation's path."""
    problems = refused(gpu_pod(annotations={CUDA: value}), L40S, config)

    assert list(problems) == [f"metadata.annotations[{CUDA}]"]


@pytest.mark.parametrize(
    ("requests", "vcpus"),
    [
        ({}, 2),
        ({"cpu": "500m"}, 2),
        ({"cpu": "3"}, 4),
        ({"cpu": "4"}, 4),
        ({"cpu": "1", "memory": "30G"}, 16),
        ({"cpu": "32"}, 32),
    ],
)
def test_vcpus_are_the_power_of_two_that_holds_cpu_and_memory(
    config: RunPodConfig, requests: dict[str, str], vcpus: int
) -> None:
    """A compute-optimised flavour has 2 GB for each."""
    body = translate(cpu_pod(**requests), CPU, config).body

    assert body["cpu"] == {"id": "cpu5c", "vcpuCount": vcpus}
    assert "gpu" not in body


def test_limits_stand_in_for_requests(config: RunPodConfig) -> None:
    """As the API server defaults them."""
    pod = make_resolved_pod(containers=[make_container(resources={"limits": {"cpu": "7"}})])

    assert translate(pod, CPU, config).body["cpu"]["vcpuCount"] == 8


def test_more_than_the_largest_flavour_is_refused(config: RunPodConfig) -> None:
    """Either by cores or by memory."""
    path = "spec.containers[0].resources.requests"

    assert list(refused(cpu_pod(cpu="33"), CPU, config)) == [path]
    assert list(refused(cpu_pod(memory="65G"), CPU, config)) == [path]
    roomy = Offer("cpu5m SECURE")
    assert translate(cpu_pod(memory="65G"), roomy, config).body["cpu"]["vcpuCount"] == 16


def test_an_unreadable_quantity_is_refused(config: RunPodConfig) -> None:
    """The API server would not let it through, `explain` may."""
    problems = refused(cpu_pod(cpu="many"), CPU, config)

    assert list(problems) == ["spec.containers[0].resources.requests.cpu"]


def test_an_offer_that_names_no_flavour_takes_the_first_configured(config: RunPodConfig) -> None:
    """Or the usual one."""
    assert translate(cpu_pod(), IMPLICIT_OFFER, config).body["cpu"]["id"] == "cpu5c"
    bare = replace(config, cpu_types=())
    assert translate(cpu_pod(), IMPLICIT_OFFER, bare).body["cpu"]["id"] == "cpu5c"
    other = replace(config, cpu_types=("cpu3g",))
    assert translate(cpu_pod(), IMPLICIT_OFFER, other).body["cpu"]["id"] == "cpu3g"


@pytest.mark.parametrize(
    ("command", "args", "sent"),
    [
        (None, None, None),
        (None, ["-v"], {"cmd": ["-v"]}),
        (["a b", "c"], ["d"], {"entrypoint": ["a b", "c"], "cmd": ["d"]}),
        (["sh", "-c", "x"], None, {"entrypoint": ["sh"], "cmd": ["-c", "x"]}),
        (["serve"], None, {"entrypoint": ["serve"], "cmd": []}),
    ],
)
def test_command_and_args_override_word_by_word(
    config: RunPodConfig, command: list[str] | None, args: list[str] | None, sent: Any
) -> None:
    """Entrypoint and command arrive as Kubernetes means them, without a shell between."""
    given: dict[str, Any] = {"command": command, "args": args}
    pod = gpu_pod(**{key: value for key, value in given.items() if value})

    body = translate(pod, L40S, config).body

    assert (json.loads(body["args"]) if "args" in body else None) == sent


def test_env_is_the_containers_and_the_stamp(config: RunPodConfig) -> None:
    """In one map, since a list of the account shows nothing else of ours."""
    env = translate(gpu_pod(env=[{"name": "A", "value": "1"}]), L40S, config).body["env"]

    assert env["A"] == "1"
    assert set(env) == {"A", *KEYS}


def test_more_than_fifty_variables_are_refused(config: RunPodConfig) -> None:
    """Ours count too."""
    most = 50 - len(KEYS)
    fits = gpu_pod(env=[{"name": f"V{n}", "value": ""} for n in range(most)])
    over = gpu_pod(env=[{"name": f"V{n}", "value": ""} for n in range(most + 1)])

    assert len(translate(fits, L40S, config).body["env"]) == 50
    assert f"allowed: {most}" in refused(over, L40S, config)["spec.containers[0].env"]


@pytest.mark.parametrize(
    "value", ["{{ RUNPOD_SECRET_key }}", "x{{RUNPOD_SECRET_key}}", "{{\t\nRUNPOD_SECRET_key}}"]
)
def test_a_reference_to_an_account_secret_is_refused(config: RunPodConfig, value: str) -> None:
    """RunPod would expand it: a pod could read the account's secrets."""
    pod = gpu_pod(env=[{"name": "KEY", "value": value}], command=["sh"], args=["-c", value])

    assert list(refused(pod, L40S, config)) == [
        "spec.containers[0].env[KEY]",
        "spec.containers[0].args",
    ]


def test_a_forged_stamp_is_refused(config: RunPodConfig) -> None:
    """Ownership is not the pod's to say."""
    pod = gpu_pod(env=[{"name": "VK_PROVIDER_POD_UID", "value": "another"}])

    assert list(refused(pod, L40S, config)) == ["spec.containers[0].env[VK_PROVIDER_POD_UID]"]


def test_ports_are_http_by_name_or_annotation_and_tcp_otherwise(config: RunPodConfig) -> None:
    """Once each, in the order of the manifest."""
    ports = [
        {"containerPort": 80, "name": "http"},
        {"containerPort": 81, "name": "http-admin"},
        {"containerPort": 82, "name": "httpx"},
        {"containerPort": 83},
        {"containerPort": 80, "name": "again"},
        {"name": "no-number"},
    ]
    pod = gpu_pod(annotations={HTTP: "83 7860"}, ports=ports)

    sent = translate(pod, L40S, config).body["ports"]

    assert sent == ["80/http", "81/http", "82/tcp", "83/http", "7860/http"]


def test_a_malformed_port_annotation_is_refused(config: RunPodConfig) -> None:
    """By the annotation's path."""
    endless = refused(gpu_pod(annotations={HTTP: "9" * 5000}), L40S, config)
    problems = refused(gpu_pod(annotations={HTTP: "80,http,70000"}), L40S, config)

    assert 'found "http"' in problems[f"metadata.annotations[{HTTP}]"]
    assert list(endless) == [f"metadata.annotations[{HTTP}]"]


def test_more_than_ten_http_ports_are_refused(config: RunPodConfig) -> None:
    """RunPod's proxy takes ten; TCP ports don't count."""
    http = [{"containerPort": 8000 + n, "name": f"http-{n}"} for n in range(11)]
    tcp = [{"containerPort": 8000 + n} for n in range(30)]

    assert list(refused(gpu_pod(ports=http), L40S, config)) == ["spec.containers[0].ports"]
    assert len(translate(gpu_pod(ports=tcp), L40S, config).body["ports"]) == 30


def test_the_data_center_is_the_offers_in_upper_case(config: RunPodConfig) -> None:
    """RunPod takes lower case and breaks on it later."""
    offer = replace(L40S, data_center="eu-ro-1")

    assert translate(gpu_pod(), offer, config).body["dataCenterIds"] == ["EU-RO-1"]
    assert "dataCenterIds" not in translate(gpu_pod(), L40S, config).body


def test_an_open_offer_is_narrowed_by_the_pods_wish(config: RunPodConfig) -> None:
    """Residency is a hard constraint."""
    pod = replace(gpu_pod(), hints=PlacementHints(data_centers=("eu-se-1", "EU-RO-1")))

    assert translate(pod, L40S, config).body["dataCenterIds"] == ["EU-SE-1", "EU-RO-1"]


def test_the_registry_is_the_pods_then_the_secrets_then_the_configurations(
    config: RunPodConfig,
) -> None:
    """The nearest to the pod wins."""
    default = replace(config, container_registry_auth_id="r-config")
    own = gpu_pod(annotations={"runpod.vk-provider.dev/registry-id": "r-pod"})

    assert "registry" not in translate(gpu_pod(), L40S, config).body
    assert translate(gpu_pod(), L40S, default).body["registry"] == "r-config"
    assert translate(gpu_pod(), L40S, default, Known("r-secret")).body["registry"] == "r-secret"
    assert translate(own, L40S, default, Known("r-secret")).body["registry"] == "r-pod"


def test_the_wrapper_starts_the_real_command(config: RunPodConfig) -> None:
    """An empty folder is work for it too."""
    scratch = {"name": "scratch", "mountPath": "/scratch"}
    container = make_container(command=["serve"], args=["-v"], volumeMounts=[scratch])
    pod = make_resolved_pod(containers=[container], volumes=[{"name": "scratch", "emptyDir": {}}])

    body = translate(pod, CPU, replace(config, files_wrapper=True)).body

    words = json.loads(body["args"])
    assert words["entrypoint"][:2] == ["/bin/sh", "-c"]
    assert words["cmd"] == ["serve", "-v"]
    assert body["env"]["VK_PROVIDER_FILES"] == "dir L3NjcmF0Y2g="


def test_a_network_volume_is_mounted(config: RunPodConfig) -> None:
    """The pod says which and where."""
    pod = gpu_pod(annotations={"runpod.vk-provider.dev/network-volume": "vol:/data"})

    mounts = translate(pod, L40S, config).body["mounts"]

    assert mounts == {"network": [{"volumeId": "vol", "path": "/data"}]}


def test_a_malformed_image_is_refused(config: RunPodConfig) -> None:
    """RunPod's own words for it name no field."""
    pod = gpu_pod(image="Not/An Image")

    assert list(refused(pod, L40S, config)) == ["spec.containers[0].image"]


def test_a_pod_without_containers_is_refused(config: RunPodConfig) -> None:
    """The API server never has one; `explain` may be given one."""
    pod = replace(gpu_pod(), containers=())

    assert list(refused(pod, L40S, config)) == ["spec.containers"]


def test_every_problem_is_told_once_and_at_once(config: RunPodConfig) -> None:
    """From all the parts of the translation."""
    container = make_container(image="!", ports=[{"containerPort": 1, "protocol": "SCTP"}])
    pod = make_resolved_pod(containers=[container], hostPID=True)

    assert set(refused(pod, CPU, config)) == {
        "spec.hostPID",
        "spec.containers[0].image",
        "spec.containers[0].ports[0].protocol",
    }


def test_notes_are_kept(config: RunPodConfig) -> None:
    """What has no effect is told and not refused."""
    notes = translate(gpu_pod(stdin=True), L40S, config).notes

    assert [note.path for note in notes] == ["spec.containers[0].stdin"]


def test_translating_changes_nothing_and_always_says_the_same(config: RunPodConfig) -> None:
    """Pods are the watch cache's own objects."""
    pod = gpu_pod(env=[{"name": "A", "value": "1"}], ports=[{"containerPort": 80}])
    before = copy.deepcopy(pod)

    first = translate(pod, L40S, config)

    assert translate(pod, L40S, config) == first
    assert pod == before
