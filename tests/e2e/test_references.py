"""What a pod refers to, resolved as a kubelet does: seen in what the backend was asked to run."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.e2e.node_under_test import USER, NodeUnderTest
from tests.e2e.workloads import Workloads, pod_template, steered, waiting_reason
from tests.rig import audit
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

SHOWN = steered(log_request="true")


def container(**fields: Any) -> list[dict[str, Any]]:
    """The only container of a pod."""
    return [{"name": "main", "image": "registry.example/app:1", **fields}]


def key_of(kind: str, name: str, key: str, **more: Any) -> dict[str, Any]:
    """`valueFrom` of a ConfigMap's or Secret's key."""
    return {f"{kind}KeyRef": {"name": name, "key": key, **more}}


async def config_map(workloads: Workloads, name: str, **values: str) -> None:
    """Create a ConfigMap."""
    await workloads.create("configmaps", {"metadata": {"name": name}, "data": values})


async def secret(workloads: Workloads, name: str, **values: str) -> None:
    """Create a Secret."""
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    await workloads.create("secrets", {"metadata": {"name": name}, "data": encoded})


async def asked_for(workloads: Workloads, pod: str, name: str = "main") -> dict[str, Any]:
    """What the backend was asked to run as this container, by the first line of its log."""
    await workloads.pod_in(pod, "Running")
    lines = (await workloads.kubectl("logs", pod, "-c", name)).splitlines()
    found: dict[str, Any] = json.loads(lines[1])
    return found


async def test_environment_is_complete(node: NodeUnderTest, workloads: Workloads) -> None:
    """Values, keys, whole objects with a prefix; env wins over envFrom (C085)."""
    await config_map(workloads, "settings", COLOR="blue", SIZE="9")
    await secret(workloads, "login", PASSWORD="s3cret-value", SIZE="10")
    env = [
        {"name": "PLAIN", "value": "1"},
        {"name": "FROM_MAP", "valueFrom": key_of("configMap", "settings", "COLOR")},
        {"name": "FROM_SECRET", "valueFrom": key_of("secret", "login", "PASSWORD")},
        {"name": "SIZE", "value": "own"},
        {"name": "NONE", "valueFrom": key_of("secret", "absent", "k", optional=True)},
    ]
    sources = [
        {"configMapRef": {"name": "settings"}},
        {"secretRef": {"name": "login"}},
        {"secretRef": {"name": "login"}, "prefix": "DB_"},
        {"configMapRef": {"name": "absent", "optional": True}},
    ]
    await workloads.create_pod(
        "app", pod_template(node.name, SHOWN, containers=container(env=env, envFrom=sources))
    )

    asked = await asked_for(workloads, "app")

    expected = {
        "PLAIN": "1",
        "FROM_MAP": "blue",
        "FROM_SECRET": "s3cret-value",
        "SIZE": "own",
        "COLOR": "blue",
        "PASSWORD": "s3cret-value",
        "DB_PASSWORD": "s3cret-value",
        "DB_SIZE": "10",
    }
    assert expected.items() <= asked["env"].items()
    assert "NONE" not in asked["env"]
    assert "s3cret-value" not in node.log


async def test_init_containers_get_theirs(node: NodeUnderTest, workloads: Workloads) -> None:
    """As every other container (C085)."""
    await secret(workloads, "login", PASSWORD="p")
    env = [{"name": "P", "valueFrom": key_of("secret", "login", "PASSWORD")}]
    init = [{"name": "prepare", "image": "registry.example/app:1", "env": env}]
    await workloads.create_pod("app", pod_template(node.name, SHOWN, initContainers=init))

    asked = await asked_for(workloads, "app", "prepare")

    assert asked["env"]["P"] == "p"


async def test_downward_api(node: NodeUnderTest, workloads: Workloads) -> None:
    """Names, uid, node, host IP, a label and an annotation by key, resources (C086)."""
    paths = {
        "NAME": "metadata.name",
        "NAMESPACE": "metadata.namespace",
        "UID": "metadata.uid",
        "NODE": "spec.nodeName",
        "ACCOUNT": "spec.serviceAccountName",
        "HOST": "status.hostIP",
        "TIER": "metadata.labels['tier']",
        "NOTE": "metadata.annotations['example.com/note']",
    }
    env: list[dict[str, Any]] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in paths.items()
    ]
    source = {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}
    env.append({"name": "CPU", "valueFrom": source})
    notes = SHOWN | {"example.com/note": "hello"}
    limits = {"limits": {"cpu": "250m", "memory": "64Mi"}}
    template = pod_template(
        node.name, notes, {"tier": "web"}, containers=container(env=env, resources=limits)
    )
    made = await workloads.create_pod("app", template)

    asked = await asked_for(workloads, "app")

    assert {name: asked["env"][name] for name in [*paths, "CPU"]} == {
        "NAME": "app",
        "NAMESPACE": workloads.namespace,
        "UID": made["metadata"]["uid"],
        "NODE": node.name,
        "ACCOUNT": "default",
        "HOST": "127.0.0.1",
        "TIER": "web",
        "NOTE": "hello",
        "CPU": "250",
    }


async def test_variables_are_expanded(node: NodeUnderTest, workloads: Workloads) -> None:
    """Earlier names in env, all of them in command and args; `$$(X)` stays (C088)."""
    await secret(workloads, "login", USER="ada")
    env = [
        {"name": "LATE", "value": "$(URL)"},
        {"name": "WHO", "valueFrom": key_of("secret", "login", "USER")},
        {"name": "URL", "value": "db://$(WHO)@host"},
    ]
    fields = {"env": env, "command": ["run", "$(URL)"], "args": ["$$(URL)", "$(NOPE)"]}
    await workloads.create_pod(
        "app", pod_template(node.name, SHOWN, containers=container(**fields))
    )

    asked = await asked_for(workloads, "app")

    assert asked["env"]["URL"] == "db://ada@host"
    assert asked["env"]["LATE"] == "$(URL)"
    assert asked["command"] == ["run", "db://ada@host"]
    assert asked["args"] == ["$(URL)", "$(NOPE)"]


async def test_volumes_of_files_are_delivered(node: NodeUnderTest, workloads: Workloads) -> None:
    """ConfigMap, Secret and downward files at their paths; the injected token is dropped (C092)."""
    await config_map(workloads, "settings", **{"app.conf": "x=1"})
    await secret(workloads, "login", password="p")
    label = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    volumes = [
        {"name": "conf", "configMap": {"name": "settings"}},
        {"name": "login", "secret": {"secretName": "login"}},
        {"name": "about", "downwardAPI": {"items": [label]}},
    ]
    mounts = [
        {"name": "conf", "mountPath": "/etc/app"},
        {"name": "login", "mountPath": "/run/login"},
        {"name": "about", "mountPath": "/run/about"},
    ]
    await workloads.create_pod(
        "app",
        pod_template(node.name, SHOWN, containers=container(volumeMounts=mounts), volumes=volumes),
    )

    asked = await asked_for(workloads, "app")

    assert asked["files"] == {
        "/etc/app/app.conf": "x=1",
        "/run/login/password": "p",
        "/run/about/name": "app",
    }


@pytest.mark.parametrize("kind", ["configMap", "secret"])
async def test_missing_reference_is_waited_for(
    node: NodeUnderTest, workloads: Workloads, kind: str
) -> None:
    """Object, then key: CreateContainerConfigError and an Event; it starts by itself (C090)."""
    env = [{"name": "K", "valueFrom": key_of(kind, "late", "k")}]
    await workloads.create_pod("app", pod_template(node.name, SHOWN, containers=container(env=env)))
    await workloads.waiting("app", "CreateContainerConfigError")
    word = {"configMap": "ConfigMap", "secret": "Secret"}[kind]
    event = await workloads.event("app", f"Mandatory{word}NotFound")
    assert "late" in event["message"]

    create = {"configMap": config_map, "secret": secret}[kind]
    await create(workloads, "late", other="x")
    pod = await workloads.until(
        "pods", "app", lambda pod: "couldn't find key k" in json.dumps(pod["status"]), "key"
    )
    assert waiting_reason(pod) == "CreateContainerConfigError"

    if kind == "configMap":
        update: dict[str, Any] = {"data": {"k": "v"}}
    else:
        update = {"stringData": {"k": "v"}}
    await workloads.patch(workloads.path(f"{kind.lower()}s", "late"), update)

    assert (await asked_for(workloads, "app"))["env"]["K"] == "v"


async def test_optional_reference_is_told_once(node: NodeUnderTest, workloads: Workloads) -> None:
    """The pod runs, one Event names what is not there."""
    sources = [
        {"configMapRef": {"name": "absent", "optional": True}},
        {"secretRef": {"name": "absent", "optional": True}},
    ]
    await workloads.create_pod(
        "app", pod_template(node.name, SHOWN, containers=container(envFrom=sources))
    )
    await workloads.pod_in("app", "Running")

    for reason in ("OptionalConfigMapNotFound", "OptionalSecretNotFound"):
        event = await workloads.event("app", reason)
        assert event["count"] == 1
        assert "absent" in event["message"]


async def test_only_what_pods_refer_to_is_watched(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """One watch per object, by name; never a list of a namespace's, let alone a cluster's."""
    await secret(workloads, "login", USER="ada")
    await secret(workloads, "not-ours", USER="eve")
    env = [{"name": "U", "valueFrom": key_of("secret", "login", "USER")}]
    mark = workloads.bed.audit_mark()
    await workloads.create_pod("app", pod_template(node.name, SHOWN, containers=container(env=env)))
    await workloads.pod_in("app", "Running")

    async def watched() -> list[audit.Event]:
        events = audit.select(workloads.bed.audit_events(mark), user=USER)
        kinds = ("secrets", "configmaps")
        return [event for event in events if audit.resource_of(event) in kinds]

    found = await eventually(watched, "a watch of the Secret")

    for event in found:
        assert event["objectRef"]["namespace"]
        assert "fieldSelector=metadata.name%3D" in event["requestURI"]
        assert "not-ours" not in event["requestURI"]


async def test_watch_ends_with_the_last_pod(node: NodeUnderTest, workloads: Workloads) -> None:
    """Nobody refers to it any more, so nobody looks."""
    await secret(workloads, "login", USER="ada")
    env = [{"name": "U", "valueFrom": key_of("secret", "login", "USER")}]
    mark = workloads.bed.audit_mark()
    await workloads.create_pod("app", pod_template(node.name, SHOWN, containers=container(env=env)))
    await workloads.pod_in("app", "Running")

    await workloads.delete("pods", "app", grace=1)
    await workloads.gone("pods", "app")

    async def ended() -> bool:
        events = audit.select(
            workloads.bed.audit_events(mark),
            user=USER,
            resource="secrets",
            namespace=workloads.namespace,
        )
        return bool(events) and all(event["stage"] == "ResponseComplete" for event in events)

    await eventually(ended, "the end of the watch", seconds=20)
