"""The create request as a person may see it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.explain import explain
from vk_provider_runpod.offers import known_offers

from vk_provider.faults import UnsupportedFieldsError
from vk_provider.pods.references import ObjectKey
from vk_provider.pods.types import IMPLICIT_OFFER, PlacementHints
from vk_provider.testing.builders import make_container, make_resolved_pod

VALUE = 'hunter2-"quoted"-2'
"""As JSON within JSON, which the arguments are, it looks otherwise."""
SECRET = {ObjectKey("Secret", "default", "login"): {"stringData": {"KEY": VALUE}}}
REFERENCE = {"secretKeyRef": {"name": "login", "key": "KEY"}}


def test_values_from_secrets_are_masked_also_in_arguments(config: RunPodConfig) -> None:
    """Plain ones stay readable."""
    env = [{"name": "PLAIN", "value": "shown"}, {"name": "KEY", "valueFrom": REFERENCE}]
    container = make_container(env=env, args=["--key=$(KEY)"])
    pod = make_resolved_pod(containers=[container], objects=SECRET)

    request = explain(pod, IMPLICIT_OFFER, config).request

    assert request["env"]["PLAIN"] == "shown"
    assert request["env"]["KEY"] == "***"
    assert request["args"] == '{"cmd":["--key=***"]}'


def test_imported_secrets_are_masked(config: RunPodConfig) -> None:
    """And nothing that came from elsewhere."""
    plain = {ObjectKey("ConfigMap", "default", "mode"): {"data": {"MODE": "shown"}}}
    container = make_container(
        envFrom=[{"secretRef": {"name": "login"}}, {"configMapRef": {"name": "mode"}}],
        env=[{"name": "A", "value": "shown"}],
    )
    pod = make_resolved_pod(containers=[container], objects=SECRET | plain)

    env = explain(pod, IMPLICIT_OFFER, config).request["env"]

    assert (env["KEY"], env["A"], env["MODE"]) == ("***", "shown", "shown")
    assert env["VK_PROVIDER_POD_NAME"] == "app-1"


def test_files_are_masked(config: RunPodConfig) -> None:
    """They may be a Secret's."""
    mount = {"name": "s", "mountPath": "/s"}
    pod = make_resolved_pod(
        containers=[make_container(command=["x"], volumeMounts=[mount])],
        volumes=[{"name": "s", "secret": {"secretName": "login"}}],
        objects=SECRET,
    )

    request = explain(pod, IMPLICIT_OFFER, replace(config, files_wrapper=True)).request

    assert request["env"]["VK_PROVIDER_FILES"] == f"644 /s/KEY ({len(VALUE)} bytes)"


def test_a_gpu_that_is_not_chosen_yet_is_said_so(config: RunPodConfig) -> None:
    """Without an account nobody knows the stock."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    pod = make_resolved_pod(containers=[make_container(resources=limits)])
    anything = replace(config, gpu_types=())

    request = explain(pod, known_offers(1, anything)[0], anything).request

    assert "catalogue" in request["gpu"]["id"]


def test_a_pull_secret_is_a_registry_or_a_note(config: RunPodConfig) -> None:
    """Offline there is no id yet."""
    login = '{"auths": {"registry.example": {"username": "me", "password": "hunter2"}}}'
    objects = {
        ObjectKey("Secret", "default", "regcred"): {"stringData": {".dockerconfigjson": login}}
    }
    secrets = [{"name": "regcred"}]
    fits = make_resolved_pod(imagePullSecrets=secrets, objects=objects)
    other = make_resolved_pod(
        containers=[make_container(image="elsewhere.example/app")],
        imagePullSecrets=secrets,
        objects=objects,
    )

    assert explain(fits, IMPLICIT_OFFER, config).request["registry"] == (
        "(found or made for registry.example)"
    )
    explained = explain(other, IMPLICIT_OFFER, config)
    assert "registry" not in explained.request
    assert [note.path for note in explained.notes] == ["spec.imagePullSecrets"]


def test_what_cannot_run_is_refused(config: RunPodConfig) -> None:
    """As create would."""
    pod = replace(make_resolved_pod(), containers=())

    with pytest.raises(UnsupportedFieldsError):
        explain(pod, IMPLICIT_OFFER, config)


def test_wishes_that_nobody_has_heard_of_are_noted(config: RunPodConfig) -> None:
    """Unless one of them is known: the others are another backend's then."""
    container = make_container(resources={"limits": {"nvidia.com/gpu": "1"}})
    anything = replace(config, gpu_types=())
    (offer,) = known_offers(1, anything)
    said = []
    for wishes in (("NVIDIA L4OS", "H1000"), ("NVIDIA L4", "H1000")):
        pod = make_resolved_pod(containers=[container])
        wishing = replace(pod, hints=PlacementHints(gpu_types=wishes))
        notes = explain(wishing, offer, anything).notes
        said.append([note.note for note in notes if "gpu-types" in note.path])

    assert said[0][0].endswith('did you mean "NVIDIA L40S"?')
    assert (len(said[0]), said[1]) == (2, [])
