"""Which ConfigMaps and Secrets a pod refers to."""

from __future__ import annotations

from vk_provider.pods.references import ObjectKey, is_token_volume, referenced

TOKEN_VOLUME = {
    "name": "kube-api-access-x7k2p",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt"}},
            {"downwardAPI": {"items": []}},
        ]
    },
}


def test_every_place_that_names_an_object_counts() -> None:
    """env, envFrom, plain and projected volumes and pull secrets, in init containers too."""
    init = {
        "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}],
        "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "c", "key": "k"}}}],
    }
    main = {"env": [{"name": "Y", "valueFrom": {"configMapKeyRef": {"name": "d", "key": "k"}}}]}
    volumes = [
        {"name": "v", "configMap": {"name": "e"}},
        {"name": "w", "secret": {"secretName": "f"}},
        {"name": "p", "projected": {"sources": [{"configMap": {"name": "g"}}]}},
        {"name": "q", "projected": {"sources": [{"secret": {"name": "h"}}]}},
    ]
    spec = {"initContainers": [init], "containers": [main], "volumes": volumes}

    found = referenced(
        {"metadata": {"namespace": "ns"}, "spec": {**spec, "imagePullSecrets": [{"name": "i"}]}}
    )

    assert {(key.kind, key.name) for key in found} == {
        *(("ConfigMap", name) for name in "adeg"),
        *(("Secret", name) for name in "bcfhi"),
    }
    assert {key.namespace for key in found} == {"ns"}


def test_the_token_volume_of_admission_is_no_reference() -> None:
    """Every pod has it and nobody wrote it, so kube-root-ca.crt is not watched for it."""
    pod = {"metadata": {"namespace": "ns"}, "spec": {"volumes": [TOKEN_VOLUME]}}

    assert is_token_volume(TOKEN_VOLUME)
    assert not is_token_volume({**TOKEN_VOLUME, "name": "mine"})
    assert referenced(pod) == frozenset()


def test_a_pod_without_a_spec_refers_to_nothing() -> None:
    """Malformed pods are not this module's business, and no reason to raise."""
    assert referenced({}) == frozenset()


def test_a_key_reads_as_kind_namespace_and_name() -> None:
    """Its text is what messages show."""
    assert str(ObjectKey("Secret", "ns", "a")) == "Secret ns/a"


def test_what_stands_beside_an_injected_token_counts_only_where_tokens_are_handed_on() -> None:
    """Nobody else needs the home cluster's CA."""
    pod = {"metadata": {"namespace": "ns"}, "spec": {"volumes": [TOKEN_VOLUME]}}

    assert referenced(pod) == frozenset()
    assert referenced(pod, with_tokens=True) == {ObjectKey("ConfigMap", "ns", "kube-root-ca.crt")}
