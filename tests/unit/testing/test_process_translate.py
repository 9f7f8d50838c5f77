"""A pod in the process provider's terms."""

from __future__ import annotations

from typing import Any

import pytest

from vk_provider.faults import UnsupportedFieldsError
from vk_provider.pods.types import ResolvedPod
from vk_provider.testing.builders import make_container, make_resolved_pod
from vk_provider.testing.process_config import DEFAULT_PATH, ProcessConfig
from vk_provider.testing.process_plan import ContainerPlan, Role
from vk_provider.testing.process_translate import WAITING_COMMAND, explained, plan_for

CONFIG = ProcessConfig(images={"busybox": ("sh", "-c")})


def plan_of(**container: Any) -> ContainerPlan:
    """The plan of a pod with one such container."""
    pod = make_resolved_pod(containers=[make_container(**container)])
    return plan_for(pod, CONFIG).containers[0]


def refused(pod: ResolvedPod) -> set[str]:
    """The paths of what is refused."""
    with pytest.raises(UnsupportedFieldsError) as raised:
        plan_for(pod, CONFIG)
    return {each.path for each in raised.value.problems}


@pytest.mark.parametrize(
    ("container", "argv"),
    [
        ({}, WAITING_COMMAND),
        ({"command": ["a"]}, ("a",)),
        ({"command": ["a"], "args": ["b"]}, ("a", "b")),
        ({"args": ["b"]}, ("b",)),
        ({"image": "busybox:1"}, ("sh", "-c")),
        ({"image": "busybox:1", "args": ["b"]}, ("sh", "-c", "b")),
        ({"image": "busybox:1", "command": ["a"]}, ("a",)),
    ],
)
def test_a_command_is_the_containers_or_the_images(
    container: dict[str, Any], argv: tuple[str, ...]
) -> None:
    """As Kubernetes combines command and args with an image's entrypoint."""
    assert plan_of(**container).argv == argv


def test_the_environment_is_the_containers_and_a_path() -> None:
    """A PATH of its own wins; nothing of ours leaks in."""
    own = [{"name": "PATH", "value": "/own"}, {"name": "A", "value": "b"}]

    assert dict(plan_of().env) == {"PATH": DEFAULT_PATH}
    assert dict(plan_of(env=own).env) == {"PATH": "/own", "A": "b"}


def test_containers_come_in_the_order_of_their_start() -> None:
    """Init containers and sidecars first."""
    pod = make_resolved_pod(
        containers=[make_container("main", stdin=True, stdinOnce=True, tty=True)],
        initContainers=[make_container("one"), make_container("two", restartPolicy="Always")],
        terminationGracePeriodSeconds=5,
    )

    plan = plan_for(pod, CONFIG)

    assert [each.role for each in plan.containers] == [Role.INIT, Role.SIDECAR, Role.MAIN]
    assert plan.grace_seconds == 5
    main = plan.containers[-1]
    assert (main.stdin, main.stdin_once, main.tty) == (True, True, True)


def test_a_pod_without_a_grace_period_gets_the_usual_one() -> None:
    """As the API server sets it."""
    pod = make_resolved_pod(terminationGracePeriodSeconds=None)

    assert plan_for(pod, CONFIG).grace_seconds == 30


def test_no_path_leads_out_of_the_containers_folder() -> None:
    """Whatever it says."""
    item = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    volumes = [
        {"name": "file", "downwardAPI": {"items": [item]}},
        {"name": "empty", "emptyDir": {}},
    ]
    mounts = [
        {"name": "file", "mountPath": "/../../a"},
        {"name": "empty", "mountPath": "data/..//b/", "subPathExpr": "$(SUB)"},
        {"name": "absent", "mountPath": "/c"},
    ]
    container = make_container(
        workingDir="../x", volumeMounts=mounts, env=[{"name": "SUB", "value": "../s"}]
    )

    (plan,) = plan_for(
        make_resolved_pod(containers=[container], volumes=volumes), CONFIG
    ).containers

    assert [each.path for each in plan.files] == ["/a/name"]
    assert plan.folders == {"/b": "empty/s"}
    assert plan.working_dir == "/x"


def test_what_a_process_can_not_be_is_refused_by_path() -> None:
    """All of it at once."""
    container = make_container(
        securityContext={"privileged": True, "runAsUser": 7, "capabilities": {"add": ["CHOWN"]}},
        resources={"limits": {"nvidia.com/gpu": "1", "cpu": "1"}},
        lifecycle={"preStop": {"exec": {"command": ["a"]}}},
        ports=[{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 80}],
        volumeMounts=[{"name": "claim", "mountPath": "/.."}],
    )
    pod = make_resolved_pod(
        containers=[container],
        dnsConfig={"nameservers": ["10.0.0.1"]},
        volumes=[{"name": "claim", "persistentVolumeClaim": {"claimName": "a"}}],
    )

    assert refused(pod) == {
        "spec.dnsConfig",
        "spec.volumes[0].persistentVolumeClaim",
        "spec.containers[0].securityContext.privileged",
        "spec.containers[0].securityContext.runAsUser",
        "spec.containers[0].securityContext.capabilities.add",
        "spec.containers[0].resources.limits[nvidia.com/gpu]",
        "spec.containers[0].lifecycle",
        "spec.containers[0].ports[0].protocol",
        "spec.containers[0].volumeMounts[0].mountPath",
    }


def test_what_has_no_effect_is_noted() -> None:
    """And accepted; the token that admission mounts is not even worth a note."""
    container = make_container(
        resources={"limits": {"memory": "1Gi"}},
        livenessProbe={"tcpSocket": {"port": 80}},
        securityContext={"runAsNonRoot": True, "privileged": False},
    )
    token = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    pod = make_resolved_pod(
        containers=[container],
        hostNetwork=True,
        volumes=[
            {"name": "kube-api-access-x", **token},
            {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
        ],
    )

    explanation = explained(pod, CONFIG)

    assert {each.path for each in explanation.notes} == {
        "spec.hostNetwork",
        "spec.volumes[1].emptyDir.sizeLimit",
        "spec.containers[0].resources.limits",
        "spec.containers[0].livenessProbe",
        "spec.containers[0].securityContext.runAsNonRoot",
    }
