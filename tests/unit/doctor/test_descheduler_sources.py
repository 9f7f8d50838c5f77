"""Finding deschedulers: in workloads of a cluster, in files, in the values of the chart."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from vk_provider.doctor.descheduler_sources import (
    find,
    is_about_deschedulers,
    of_documents,
    policies_wanted,
)

POLICY = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": []}
KEY = ("kube-system", "policy")
WHERE = "Deployment kube-system/descheduler"


def pod_spec(*args: str, mount: str = "/policy", **volume: Any) -> dict[str, Any]:
    """A pod with a descheduler."""
    container = {
        "command": ["/bin/descheduler"],
        "args": list(args) or ["--policy-config-file=/policy/policy.yaml", "--v", "3", "--dry-run"],
        "volumeMounts": [{"name": "other"}, {"name": "policy", "mountPath": mount}],
    }
    source = {"name": "policy", "configMap": volume or {"name": "policy"}}
    return {"containers": [{}, {"args": ["--flag"]}, container], "volumes": [source]}


def deployment(spec: dict[str, Any] | None = None) -> dict[str, Any]:
    """A Deployment of it."""
    return {
        "kind": "Deployment",
        "metadata": {"name": "descheduler", "namespace": "kube-system"},
        "spec": {"template": {"spec": spec or pod_spec()}},
    }


def config_map(text: str = yaml.safe_dump(POLICY), key: str = "policy.yaml") -> dict[str, Any]:
    """The ConfigMap with its policy."""
    metadata = {"name": "policy", "namespace": "kube-system"}
    return {"kind": "ConfigMap", "metadata": metadata, "data": {key: text}}


def test_a_policy_of_another_shape_is_told_and_not_judged() -> None:
    """Whether it is mounted or not."""
    broken = config_map(yaml.safe_dump({**POLICY, "profiles": 5}))
    said = "profiles: found 5, allowed: a list"

    assert find([deployment()], {KEY: broken}).broken == [
        ("Deployment kube-system/descheduler", said)
    ]
    assert of_documents([("f.yaml:1", broken)]).broken == [("f.yaml:1", said)]


def test_a_deployment_and_its_policy() -> None:
    """The flags come along."""
    (program,) = find([deployment()], {KEY: config_map()}).programs

    assert program.where == "Deployment kube-system/descheduler"
    assert program.policy == POLICY
    assert program.flags is not None
    assert program.flags["dry-run"] == "true"
    assert program.flags["v"] == "3"


def test_a_cron_job_and_its_policy() -> None:
    """The stock chart makes one."""
    template = {"template": {"spec": pod_spec()}}
    job = {**deployment(), "kind": "CronJob", "spec": {"jobTemplate": {"spec": template}}}

    (program,) = find([job], {KEY: config_map()}).programs
    assert program.where == "CronJob kube-system/descheduler"
    assert program.is_repeated
    assert list(policies_wanted([job])) == [KEY]


def test_a_volume_may_rename_the_key() -> None:
    """`items` maps keys to files."""
    items = [{"key": "other.yaml", "path": "policy.yaml"}]
    made = deployment(pod_spec(name="policy", items=items))

    assert find([made], {KEY: config_map(key="other.yaml")}).programs


def test_what_cannot_be_read_is_told() -> None:
    """No volume, no ConfigMap, no mapping: each with its reason."""
    baked = deployment(pod_spec("--policy-config-file", "/elsewhere/policy.yaml"))
    listed = config_map("[1]")

    assert "in no ConfigMap" in find([baked], {}).mute[0][1]
    for maps in ({}, {KEY: listed}):
        assert "has no policy" in find([deployment()], maps).mute[0][1]


@pytest.mark.parametrize(
    ("key", "text", "is_told"),
    [
        ("policy.yaml", "a: [", True),
        ("policy.yaml", "a: 1\na: 2", True),
        ("rules", "kind: DeschedulerPolicy\nprofiles: [", True),
        ("start.sh", "a: [", False),
    ],
)
def test_a_policy_that_is_no_yaml_is_told(key: str, text: str, is_told: bool) -> None:
    """Mounted or not, by its line; any other text may be what it likes."""
    broken = config_map(text, key)

    (mounted,) = find(
        [deployment(pod_spec(f"--policy-config-file=/policy/{key}"))], {KEY: broken}
    ).broken
    alone = of_documents([("f.yaml:1", broken)]).broken

    assert mounted[0] == WHERE
    assert mounted[1].startswith(f"ConfigMap kube-system/policy: {key}: line ")
    assert bool(alone) is is_told


def test_others_are_no_deschedulers() -> None:
    """Every Deployment of the cluster is looked at."""
    other = deployment({"containers": [{"args": ["--policy=x"]}]})
    empty = {"kind": "CronJob", "metadata": {}, "spec": {"jobTemplate": None}}

    found = find([other, empty], {})

    assert not found.programs
    assert not found.mute


def test_files_may_hold_any_of_them() -> None:
    """A policy, a ConfigMap with one, a Deployment with its ConfigMap, values of the chart."""
    values = {"kind": "Deployment", "deschedulingInterval": "1m", "deschedulerPolicy": {"a": 1}}
    cron = {"cmdOptions": {"v": 3}, "deschedulerPolicy": None}
    alone = {**config_map(), "metadata": {"name": "alone"}}
    strange = {**alone, "data": {"x": "y", "z": "kind: Other"}}
    documents = [POLICY, deployment(), config_map(), alone, strange, values, cron, "text"]

    found = of_documents([(f"file:{number}", one) for number, one in enumerate(documents)])

    flags = {program.where: program.flags for program in found.programs}
    assert flags.keys() == {
        "Deployment kube-system/descheduler",
        "file:0",
        "file:3",
        "file:5",
        "file:6",
    }
    assert flags["file:5"] == {"descheduling-interval": "1m"}
    assert flags["file:6"] == {"v": "3"}
    assert found.programs[-1].is_repeated


def test_what_a_file_may_be_about() -> None:
    """Everything else is configuration."""
    assert is_about_deschedulers(POLICY)
    assert is_about_deschedulers(deployment())
    assert is_about_deschedulers({"deschedulerPolicy": {}})
    assert not is_about_deschedulers({"kind": "VirtualNode"})
    assert not is_about_deschedulers("text")
