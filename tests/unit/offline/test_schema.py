"""The shape of a pod: what an API server would refuse is named by path."""

from typing import Any

import pytest
import yaml

from vk_provider.offline.schema import shape_problems


def _said(spec: str, metadata: str = "{}") -> list[str]:
    template: dict[str, Any] = {"metadata": yaml.safe_load(metadata), "spec": yaml.safe_load(spec)}
    return [str(problem) for problem in shape_problems(template)]


def _container(text: str) -> list[str]:
    return _said(f"{{containers: [{{name: a, {text}}}]}}")


def test_a_good_pod_has_no_problem() -> None:
    """Amounts may be bare numbers, ports a name, and free keys anything."""
    assert not _said(
        """
        nodeSelector: {a/b: c}
        volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 1000}}]
        containers:
          - name: a
            image: x
            resources: {limits: {cpu: 2, nvidia.com/gpu: 1}}
            livenessProbe: {httpGet: {port: http, path: /}}
        """,
        '{labels: {a: "1"}, creationTimestamp: null}',
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("imaeg: x", 'imaeg: unknown field; did you mean "image"?'),
        ("env_from: []", 'env_from: unknown field; did you mean "envFrom"?'),
        ("zzz: 1", "zzz: unknown field; no field of a pod is called so here"),
        ("ports: [{containerPort: 1, q: 1}]", "ports[0].q: unknown field; valid: containerPort,"),
        ("image: 5", "image: found 5, allowed: a string, in quotes"),
        ("command: foo", 'command: found "foo", allowed: a list'),
        ("env: hello", 'env: found "hello", allowed: a list'),
        ("env: [{name: b, value: true}]", "env[0].value: found true, allowed: a string"),
        ("tty: maybe", 'tty: found "maybe", allowed: true or false'),
        ("ports: [{containerPort: http}]", 'ports[0].containerPort: found "http", allowed: a wh'),
        ("resources: {limits: {cpu: true}}", "resources.limits.cpu: found true, allowed: a st"),
        (
            "env: [{name: b, valueFrom: {secretKeyRef: {name: s}}}]",
            "env[0].valueFrom.secretKeyRef.key: missing, must be given",
        ),
    ],
)
def test_a_wrong_field_is_named(text: str, problem: str) -> None:
    """With what was found and what would do."""
    [said] = _container(text)
    assert said.startswith(f"spec.containers[0].{problem}")


def test_a_choice_of_types_is_one_problem() -> None:
    """A port is a number or a name; a list is neither, and says so once."""
    [said] = _container("livenessProbe: {httpGet: {port: [1]}}")
    assert said.startswith("spec.containers[0].livenessProbe.httpGet.port: found a list")


def test_keys_with_dots_are_bracketed() -> None:
    """So that a path can be copied."""
    [said] = _said("{containers: []}", "{labels: {a.b/c: 1}}")
    assert said == "metadata.labels[a.b/c]: found 1, allowed: a string, in quotes"


def test_what_is_no_mapping_is_named() -> None:
    """An item of a list as well."""
    assert _said("{containers: [foo]}") == ['spec.containers[0]: found "foo", allowed: a mapping']
