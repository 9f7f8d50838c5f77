"""The values of a pod: what an API server would not store is named by path."""

from typing import Any

import pytest
import yaml

from vk_provider.offline.validity import value_problems


def _said(spec: str) -> list[str]:
    template: dict[str, Any] = {"spec": yaml.safe_load(spec)}
    return [str(problem) for problem in value_problems(template)]


def _container(text: str) -> list[str]:
    return _said(f"{{containers: [{{name: a, {text}}}]}}")


def test_good_values_have_no_problem() -> None:
    """In any of the forms that are allowed."""
    assert not _said(
        """
        restartPolicy: Never
        initContainers: [{name: i, image: x}]
        containers:
          - name: a
            imagePullPolicy: Never
            ports: [{containerPort: 65535, hostPort: 0, protocol: UDP}]
            resources:
              limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: "2"}
              requests: {cpu: 500m, ephemeral-storage: 1Gi, nvidia.com/gpu: 2}
        """
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("imagePullPolicy: always", 'imagePullPolicy: found "always", allowed: Always, IfNotPres'),
        (
            "imagePullPolicy: zzz",
            'imagePullPolicy: found "zzz", allowed: Always, IfNotPresent, Nev',
        ),
        ("ports: [{containerPort: 0}]", "ports[0].containerPort: found 0, allowed: 1 to 65535"),
        ("ports: [{hostPort: 70000}]", "ports[0].hostPort: found 70000, allowed: 0 to 65535"),
        ("ports: [{protocol: tcp}]", 'ports[0].protocol: found "tcp", allowed: TCP, UDP, SCTP'),
        ("resources: {limits: {cpu: lots}}", 'resources.limits.cpu: found "lots", allowed: a quan'),
        ("resources: {limits: {cpu: []}}", "resources.limits.cpu: found a list, allowed: a quan"),
        ("resources: {limits: {a.b/c: -1}}", "resources.limits[a.b/c]: found -1, allowed: 0 or mo"),
        ("resources: {limits: {a.b/c: 1.5}}", "resources.limits[a.b/c]: found 1.5, allowed: a who"),
        (
            "resources: {requests: {a/b: 1}}",
            "resources.requests[a/b]: must equal limits, where a/b",
        ),
        (
            "resources: {requests: {cpu: 2}, limits: {cpu: 1}}",
            "resources.requests.cpu: must not be more than limits",
        ),
    ],
)
def test_a_wrong_value_is_named(text: str, problem: str) -> None:
    """With what was found and what would do."""
    [said] = _container(text)
    assert said.startswith(f"spec.containers[0].{problem}")


def test_two_containers_of_one_name() -> None:
    """Init containers count, and three of them are one mistake."""
    said = _said("{initContainers: [{name: a}], containers: [{name: a}, {name: a}]}")
    assert said == ['spec.containers[0].name: "a" is the name of another container']


def test_a_wrong_amount_is_reported_once() -> None:
    """Not again as a request that differs from its limit."""
    said = _container("resources: {requests: {a/b: 1}, limits: {a/b: lots}}")
    assert said == [
        'spec.containers[0].resources.limits[a/b]: found "lots", allowed: a quantity, such as 2, '
        "500m, 16Gi"
    ]


@pytest.mark.parametrize("spec", ["hello", "{restartPolicy: 5, containers: [{resources: 7}]}"])
def test_a_wrong_shape_is_somebody_elses(spec: str) -> None:
    """Types are checked where the shape is."""
    assert not _said(spec)
