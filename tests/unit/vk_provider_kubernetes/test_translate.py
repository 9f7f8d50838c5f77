"""A home pod as another cluster's pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.config import HomeDns, KubernetesConfig
from vk_provider_kubernetes.translate import GATE, Translation, translate

from vk_provider.faults import UnsupportedFieldsError
from vk_provider.testing.builders import make_container, make_resolved_pod


def spec_of(config: KubernetesConfig, **pod: Any) -> dict[str, Any]:
    """The remote spec of a pod."""
    return dict(translate(make_resolved_pod(**pod), config).body["spec"])


def test_the_smallest_pod(config: KubernetesConfig) -> None:
    """Named by hash, not scheduled yet, without token and foreign Services."""
    found = translate(make_resolved_pod(), config)

    assert found.namespace == "vk-node-1"
    assert found.copies == ()
    assert found.body["spec"] == {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "containers": [{"name": "main", "image": "registry.example/app:1"}],
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostname": "app-1",
    }


def test_the_stamp_is_on_it_and_the_users_marks_are_kept(config: KubernetesConfig) -> None:
    """But for what is about home's own tools, and what would counterfeit the stamp."""
    own = {"app": "web", marks.NODE: "somebody-else"}
    annotations = {
        "note": "x",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "vk-provider.dev/placement": "{}",
    }
    pod = make_resolved_pod(metadata={"labels": own, "annotations": annotations})

    metadata = translate(pod, config).body["metadata"]

    assert metadata["labels"] == {"app": "web", **marks.labels(pod.stamp)}
    remembered = {marks.LABELS: "app", marks.SPEC: metadata["annotations"][marks.SPEC]}
    assert metadata["annotations"] == {"note": "x", **remembered, **marks.full(pod.stamp)}
    assert metadata["name"] == marks.instance_name(pod.stamp)
    assert marks.read({"metadata": metadata}) == pod.stamp


def test_the_backend_that_makes_it_is_marked(config: KubernetesConfig) -> None:
    """Two of one node may share a namespace."""
    found = translate(make_resolved_pod(), replace(config, backend="other"))

    assert found.body["metadata"]["labels"][marks.BACKEND] == "other"


def test_a_pod_with_references_waits_behind_a_gate(
    config: KubernetesConfig, objects: Mapping[Any, Any]
) -> None:
    """Until its copies are there."""
    container = make_container(envFrom=[{"configMapRef": {"name": "conf"}}])

    found = translate(make_resolved_pod(objects=objects, containers=[container]), config)

    assert found.body["spec"]["schedulingGates"] == [{"name": GATE}]
    assert [copy.origin for copy in found.copies] == ["ConfigMap default/conf"]


def test_pull_secrets_go_along(config: KubernetesConfig, objects: Mapping[Any, Any]) -> None:
    """Under the copy's name."""
    pod = make_resolved_pod(objects=objects, imagePullSecrets=[{"name": "regcred"}])

    found = translate(pod, config)

    (copy,) = found.copies
    assert found.body["spec"]["imagePullSecrets"] == [{"name": copy.name}]


def test_init_containers_and_sidecars_stay_what_they_are(config: KubernetesConfig) -> None:
    """Probes, hooks and restart policies, too."""
    sidecar = make_container("proxy", restartPolicy="Always", startupProbe={"exec": {}})

    spec = spec_of(config, initContainers=[sidecar])

    assert spec["initContainers"] == [sidecar]


def test_tolerations_of_our_own_node_stay_at_home(config: KubernetesConfig) -> None:
    """The others only widen where the pod may go."""
    gpu = {"key": "nvidia.com/gpu", "operator": "Exists"}
    home = [
        {"key": "virtual-kubelet.io/provider", "operator": "Exists"},
        {"key": "vk-provider.dev/gate", "value": "hold"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
    ]
    extra = {"key": "team", "value": "ml"}

    spec = spec_of(replace(config, tolerations=(extra,)), tolerations=[*home, gpu])

    assert spec["tolerations"] == [gpu, extra]


def test_the_backends_own_placement_applies(config: KubernetesConfig) -> None:
    """And this cluster's is told to have no effect."""
    placed = replace(
        config,
        node_selector={"pool": "gpu"},
        priority_class_name="low",
        scheduler_name="volcano",
        service_account_name="runner",
    )
    pod = make_resolved_pod(nodeSelector={"zone": "a"}, serviceAccountName="mine", priority=7)

    found = translate(pod, placed)

    spec = found.body["spec"]
    assert (spec["nodeSelector"], spec["priorityClassName"]) == ({"pool": "gpu"}, "low")
    assert (spec["schedulerName"], spec["serviceAccountName"]) == ("volcano", "runner")
    paths = {note.path for note in found.notes}
    assert paths == {"spec.nodeSelector", "spec.priority", "spec.serviceAccountName"}


@pytest.mark.parametrize(
    ("name", "given", "hostname"),
    [
        ("web-0", None, "web-0"),
        ("web-0", "chosen", "chosen"),
        ("n" * 62 + ".tail", None, "n" * 62),
    ],
)
def test_the_host_name_is_homes(
    config: KubernetesConfig, name: str, given: str | None, hostname: str
) -> None:
    """A StatefulSet's pod knows itself by it."""
    fields: dict[str, Any] = {"hostname": given} if given else {}

    spec = dict(translate(make_resolved_pod(name, **fields), config).body["spec"])

    assert spec["hostname"] == hostname


def test_host_access_is_the_operators_to_grant(config: KubernetesConfig) -> None:
    """Then the other node's network has the name, too. A privileged container has all of a node."""
    privileged = make_container(securityContext={"privileged": True})
    given = make_resolved_pod(hostNetwork=True, containers=[privileged])

    spec = dict(translate(given, replace(config, host_access=True)).body["spec"])

    assert spec["hostNetwork"] is True
    assert "hostname" not in spec
    assert spec["containers"][0]["securityContext"] == {"privileged": True}
    with pytest.raises(UnsupportedFieldsError, match=r"containers\[0\].securityContext.privileged"):
        translate(given, config)


def test_every_refused_field_is_named_at_once(config: KubernetesConfig) -> None:
    """With nothing sent."""
    volumes = [{"name": "h", "hostPath": {"path": "/"}}]
    container = make_container(quantum=1, ports=[{"containerPort": 1, "hostPort": 1}])
    pod = make_resolved_pod(hostPID=True, containers=[container], volumes=volumes)

    with pytest.raises(UnsupportedFieldsError) as refused:
        translate(pod, config)

    assert {each.path for each in refused.value.problems} == {
        "spec.hostPID",
        "spec.containers[0].quantum",
        "spec.containers[0].ports[0].hostPort",
        "spec.volumes[0].hostPath",
    }


def test_namespaces_follow_the_map(config: KubernetesConfig) -> None:
    """One for the node unless home's is mapped."""
    mapped = replace(config, namespaces={"default": "team-a"})

    found: Translation = translate(make_resolved_pod(), mapped)

    assert found.namespace == found.body["metadata"]["namespace"] == "team-a"
    assert mapped.all_namespaces == ("team-a", "vk-node-1")


def test_debuggers_go_beside_the_pod_with_copies_of_their_own(
    config: KubernetesConfig, objects: Mapping[Any, Any]
) -> None:
    """What the pod itself refers to keeps its name, or its copy would grow stale."""
    password = {"name": "P", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}
    username = {"name": "U", "valueFrom": {"secretKeyRef": {"name": "login", "key": "username"}}}
    main, debugger = make_container(env=[password]), make_container("debugger", env=[username])
    alone = translate(make_resolved_pod(objects=objects, containers=[main]), config)
    added = {**debugger, "targetContainerName": "main"}
    pod = make_resolved_pod(objects=objects, containers=[main], ephemeralContainers=[added])

    found = translate(pod, config)

    assert found.body == alone.body
    assert len(found.copies) == 2
    assert found.copies[0] == alone.copies[0]
    (made,) = found.debuggers
    assert made["targetContainerName"] == "main"
    assert made["env"][0]["valueFrom"]["secretKeyRef"]["name"] == found.copies[1].name


def test_a_debugger_that_can_not_be_is_named_and_harms_nobody(config: KubernetesConfig) -> None:
    """The pod runs on."""
    debugger = make_container("debugger", volumeDevices=[{"name": "disk", "devicePath": "/dev/x"}])

    found = translate(make_resolved_pod(ephemeralContainers=[debugger]), config)

    assert found.debuggers == ()
    assert [each.path for each in found.refusals] == ["spec.ephemeralContainers[0].volumeDevices"]


def test_names_are_looked_up_at_home_where_home_is_reached() -> None:
    """Not on the remote node's own network, whose resolver is that node's."""
    dns = HomeDns(("10.0.0.10",), "cluster.local")
    config = KubernetesConfig("vk-burst", home_services=True, home_dns=dns, host_access=True)

    spec = translate(make_resolved_pod(), config).body["spec"]
    on_host = translate(make_resolved_pod(hostNetwork=True), config).body["spec"]

    assert spec["dnsPolicy"] == "None"
    assert spec["dnsConfig"]["searches"][0] == "default.svc.cluster.local"
    assert on_host.get("dnsPolicy") != "None"


def test_the_instance_remembers_which_version_of_the_pod_it_is_of() -> None:
    """Where the API server counts versions of a spec."""
    config = KubernetesConfig("vk-burst")

    counted = translate(make_resolved_pod(metadata={"generation": 3}), config).body["metadata"]
    uncounted = translate(make_resolved_pod(), config).body["metadata"]

    assert counted["annotations"]["vk-provider.dev/home-generation"] == "3"
    assert "vk-provider.dev/home-generation" not in uncounted["annotations"]
