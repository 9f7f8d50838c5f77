"""From a pod to a request: what is asked for, and every reason not to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from vk_provider_modal.config import ModalConfig
from vk_provider_modal.translate import translate

from vk_provider.faults import UnsupportedFieldsError
from vk_provider.pods.types import IMPLICIT_OFFER, Offer, PlacementHints
from vk_provider.testing.builders import make_container, make_resolved_pod

GPU: dict[str, Any] = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}


def asked(config: ModalConfig, offer: Offer = IMPLICIT_OFFER, **pod: Any) -> dict[str, Any]:
    """The request for a pod with these fields."""
    return dict(translate(make_resolved_pod(**pod), offer, config).request)


def refused(config: ModalConfig, **pod: Any) -> dict[str, str]:
    """The refused paths of a pod, with the reasons."""
    with pytest.raises(UnsupportedFieldsError) as raised:
        translate(make_resolved_pod(**pod), IMPLICIT_OFFER, config)
    return {problem.path: problem.message for problem in raised.value.problems}


def notes(config: ModalConfig, **pod: Any) -> dict[str, str]:
    """The notes on a pod."""
    found = translate(make_resolved_pod(**pod), IMPLICIT_OFFER, config).notes
    return {note.path: note.note for note in found}


def test_a_pod_without_containers_is_refused(config: ModalConfig) -> None:
    """Instead of an index error."""
    pod = replace(make_resolved_pod(), containers=())

    with pytest.raises(UnsupportedFieldsError, match=r"spec\.containers"):
        translate(pod, IMPLICIT_OFFER, config)


def test_the_smallest_pod_asks_for_nothing_but_its_image(config: ModalConfig) -> None:
    """The image's own command runs."""
    request = asked(config)

    assert request["image"] == {"reference": "registry.example/app:1"}
    assert request.keys() == {"name", "tags", "image", "env", "timeout"}


def test_a_command_replaces_the_entrypoint(config: ModalConfig) -> None:
    """Modal would append it to the image's own otherwise."""
    request = asked(config, containers=[make_container(command=["a"], args=["b"])])

    assert request["image"]["dockerfile"] == ["ENTRYPOINT []"]
    assert request["args"] == ["a", "b"]


def test_args_alone_go_to_the_entrypoint(config: ModalConfig) -> None:
    """As in Kubernetes."""
    request = asked(config, containers=[make_container(args=["b"])])

    assert "dockerfile" not in request["image"]
    assert request["args"] == ["b"]


def test_a_gpu_is_of_the_offers_type(config: ModalConfig) -> None:
    """Whatever the configuration prefers."""
    offer = Offer("H100 x1", gpu_type="h100", gpu_count=1)

    assert asked(config, offer, containers=[make_container(**GPU)])["gpu"] == "H100"


def test_an_offer_without_a_type_leaves_it_to_the_pod(config: ModalConfig) -> None:
    """And then to the configuration."""
    pod = make_resolved_pod(containers=[make_container(**GPU)])
    wishing = replace(pod, hints=PlacementHints(gpu_types=("l40s",)))

    assert translate(wishing, IMPLICIT_OFFER, config).request["gpu"] == "L40S"
    assert translate(pod, IMPLICIT_OFFER, config).request["gpu"] == "T4"


def test_a_gpu_without_any_type_is_refused(configured: Callable[..., ModalConfig]) -> None:
    """Nobody guesses with somebody's money."""
    found = refused(configured(gpu_types=()), containers=[make_container(**GPU)])

    assert "gpuTypes" in found["spec.containers[0].resources.limits[nvidia.com/gpu]"]


def test_a_deadline_shortens_the_sandboxs_life(config: ModalConfig) -> None:
    """So that a leak ends soon, but not before the pod's own end is told."""
    assert asked(config, activeDeadlineSeconds=60)["timeout"] == 720
    assert asked(config, activeDeadlineSeconds=90_000)["timeout"] == 86_400


def test_a_port_is_a_tunnel_once(config: ModalConfig) -> None:
    """An annotation says of which kind."""
    name = "modal.vk-provider.dev/tcp-ports"
    ports = [{"containerPort": 22}, {"containerPort": 80}, {"name": "numberless"}]
    request = asked(
        config,
        metadata={"annotations": {name: "22"}},
        containers=[make_container(ports=ports)],
    )

    assert request["encryptedPorts"] == [80]
    assert request["unencryptedPorts"] == [22]
    assert "inboundCidrs" not in request


def test_callers_can_be_named(configured: Callable[..., ModalConfig]) -> None:
    """Where there is anything to call."""
    config = configured(inbound_cidrs=("10.0.0.0/8",))
    ported = [make_container(ports=[{"containerPort": 80}])]

    assert asked(config, containers=ported)["inboundCidrs"] == ["10.0.0.0/8"]
    assert "inboundCidrs" not in asked(config)
    assert "inboundCidrs" in notes(config, containers=ported)["spec.containers[0].ports"]


@pytest.mark.parametrize("port", ["http", "0", "65536", "٣"])
def test_a_port_that_is_none_is_refused(config: ModalConfig, port: str) -> None:
    """With the annotation's path."""
    name = "modal.vk-provider.dev/h2-ports"

    assert f"metadata.annotations[{name}]" in refused(
        config, metadata={"annotations": {name: port}}
    )


def test_an_image_of_two_words_is_refused(config: ModalConfig) -> None:
    """It becomes a line of a Dockerfile."""
    container = make_container() | {"image": "app:1 AS other"}

    assert "spec.containers[0].image" in refused(config, containers=[container])


@pytest.mark.parametrize(("field", "path"), [("args", "args"), ("command", "command")])
def test_too_many_arguments_are_refused(config: ModalConfig, field: str, path: str) -> None:
    """Before Modal refuses them."""
    words: dict[str, Any] = {field: ["x" * 70_000]}
    container = make_container(**words)

    assert f"spec.containers[0].{path}" in refused(config, containers=[container])


def test_a_name_that_is_no_variable_is_refused(config: ModalConfig) -> None:
    """Modal takes letters, digits and underscores."""
    container = make_container(env=[{"name": "a.b", "value": "1"}])

    assert "spec.containers[0].env[a.b]" in refused(config, containers=[container])


def test_always_pulling_is_a_note_or_a_forced_build(
    configured: Callable[..., ModalConfig],
) -> None:
    """Modal keeps a tag as it first saw it."""
    containers = [make_container(imagePullPolicy="Always")]
    path = "spec.containers[0].imagePullPolicy"

    assert path in notes(configured(), containers=containers)
    assert path not in notes(configured(force_build=True), containers=containers)
    assert asked(configured(force_build=True), containers=containers)["image"]["forceBuild"]


def test_places_come_from_the_offer_then_from_the_pod(
    configured: Callable[..., ModalConfig],
) -> None:
    """An open offer is narrowed by the pod's wish."""
    config = configured(cloud="gcp")
    offer = Offer("cpu us-east", data_center="us-east")
    pod = replace(make_resolved_pod(), hints=PlacementHints(data_centers=("EU-West",)))

    assert asked(config, offer)["region"] == ["us-east"]
    assert translate(pod, IMPLICIT_OFFER, config).request["region"] == ["eu-west"]
    assert asked(config)["cloud"] == "gcp"


def test_the_wrapper_runs_before_the_command(configured: Callable[..., ModalConfig]) -> None:
    """And takes its work list along."""
    request = asked(
        configured(files_wrapper=True),
        containers=[
            make_container(
                command=["serve"], volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}]
            )
        ],
        volumes=[{"name": "scratch", "emptyDir": {}}],
    )

    assert request["args"][-1] == "serve"
    assert request["args"][:2] == ["/bin/sh", "-c"]
    assert "VK_PROVIDER_FILES" in request["env"]


def test_the_work_directory_is_the_pods(config: ModalConfig) -> None:
    """Where it names one."""
    assert asked(config, containers=[make_container(workingDir="/srv")])["workdir"] == "/srv"


def test_sizes_are_request_and_limit(config: ModalConfig) -> None:
    """A request alone has no limit; a limit alone is both."""
    requests = make_container(resources={"requests": {"cpu": "2", "memory": "1Gi"}})
    limits = make_container(resources={"limits": {"cpu": "4"}})
    both = make_container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "4"}})

    assert (asked(config, containers=[requests])["cpu"]) == 1.0
    assert (asked(config, containers=[requests])["memory"]) == 1024
    assert asked(config, containers=[limits])["cpu"] == [2.0, 2.0]
    assert asked(config, containers=[both])["cpu"] == [1.0, 2.0]
