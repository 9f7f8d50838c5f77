"""The shipped manifests: least rights, a locked-down pod, and parts that fit together."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from vk_provider import __version__
from vk_provider.bursting.names import BURST_LABEL
from vk_provider.controllers.webhook_certificates import PATHS
from vk_provider.settings_bursting_webhook import WebhookSettings
from vk_provider.settings_file import load_settings

BASE = Path(__file__).parents[3] / "deploy" / "kustomize"
COMPONENTS = sorted(BASE.glob("components/*/kustomization.yaml"))
CODE = BASE.parents[1] / "vk_provider"
RIGHTS = [
    BASE / "cluster-rights.yaml",
    BASE / "namespace-rights.yaml",
    *BASE.glob("components/*/rights.yaml"),
]
SUBJECT = {"kind": "ServiceAccount", "name": "vk-provider", "namespace": "vk-provider"}
Object = dict[str, Any]


def objects(*files: Path) -> Iterator[Object]:
    """The objects of some files."""
    for file in files:
        yield from yaml.safe_load_all(file.read_text())


def of_kind(kind: str, *files: Path) -> list[Object]:
    """The objects of one kind."""
    return [each for each in objects(*files) if each["kind"] == kind]


def rules(*files: Path) -> Iterator[tuple[str, Object]]:
    """Every rule with the name of its role."""
    for role in [*of_kind("ClusterRole", *files), *of_kind("Role", *files)]:
        for rule in role["rules"]:
            yield role["metadata"]["name"], rule


def deployment() -> Object:
    """The Deployment."""
    (found,) = of_kind("Deployment", BASE / "deployment.yaml")
    return found


def pod() -> Object:
    """Its pod."""
    spec: Object = deployment()["spec"]["template"]["spec"]
    return spec


def test_every_manifest_is_part_of_the_kustomization() -> None:
    """A forgotten file is a missing right."""
    kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    files = {file.name for file in BASE.glob("*.yaml")} - {"kustomization.yaml", "config.yaml"}

    assert set(kustomization["resources"]) == files
    assert kustomization["configMapGenerator"][0]["files"] == ["config.yaml"]


def test_no_transformer_moves_roles_out_of_their_namespaces() -> None:
    """`namespace:` in the kustomization would."""
    assert "namespace" not in yaml.safe_load((BASE / "kustomization.yaml").read_text())


@pytest.mark.parametrize("file", COMPONENTS, ids=lambda file: file.parent.name)
def test_a_component_names_files_that_exist(file: Path) -> None:
    """And is a component."""
    component = yaml.safe_load(file.read_text())

    assert component["kind"] == "Component"
    parts = [*component.get("resources", ()), *component.get("components", ())]
    assert all((file.parent / name).exists() for name in parts)


def test_no_rule_has_a_wildcard() -> None:
    """Rights are named."""
    for _, rule in rules(*RIGHTS):
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def test_the_base_grants_exactly_what_the_code_calls() -> None:
    """One line a right; a new one is added here with its reason in the manifest."""
    granted = {
        f"{verb} {resource}"
        for _, rule in rules(BASE / "cluster-rights.yaml")
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    assert granted == {
        "get nodes", "list nodes", "watch nodes", "create nodes", "patch nodes",
        "patch nodes/status",
        "get pods", "list pods", "watch pods", "delete pods", "patch pods/status",
        "list configmaps", "watch configmaps", "list secrets", "watch secrets",
        "create events", "patch events", "get namespaces",
        "create tokenreviews", "create subjectaccessreviews",
    }  # fmt: skip


def test_what_can_be_limited_to_a_name_is() -> None:
    """The one namespace and the one ConfigMap that are read."""
    named = {
        (rule["resources"][0], *rule["resourceNames"])
        for _, rule in rules(*RIGHTS)
        if "resourceNames" in rule
    }

    assert named == {
        ("namespaces", "kube-system"),
        ("configmaps", "extension-apiserver-authentication"),
        ("mutatingwebhookconfigurations", "vk-provider-opt-in"),
        ("secrets", "vk-provider-webhook"),
    }


@pytest.mark.parametrize("file", RIGHTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_rule_says_which_code_needs_it(file: Path) -> None:
    """A comment of its own, right above."""
    lines = file.read_text().splitlines()
    first_lines = [number for number, line in enumerate(lines) if line.startswith("  - apiGroups")]

    assert first_lines
    assert all(lines[number - 1].lstrip().startswith("#") for number in first_lines)


@pytest.mark.parametrize("file", RIGHTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_the_code_that_a_rule_names_exists(file: Path) -> None:
    """A comment outlives a file otherwise."""
    named = re.findall(r"\b(?:app|controllers|kube|loops|server)/\w+", file.read_text())

    assert named
    assert [name for name in named if not (CODE / f"{name}.py").is_file()] == []


@pytest.mark.parametrize("file", RIGHTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_role_is_bound_to_the_service_account_alone(file: Path) -> None:
    """In its own namespace."""
    for kind in ("ClusterRole", "Role"):
        roles = {
            (r["metadata"]["name"], r["metadata"].get("namespace")) for r in of_kind(kind, file)
        }
        bindings = of_kind(f"{kind}Binding", file)

        assert roles == {
            (each["roleRef"]["name"], each["metadata"].get("namespace")) for each in bindings
        }
        assert all(each["roleRef"]["kind"] == kind for each in bindings)
        assert all(each["subjects"] == [SUBJECT] for each in bindings)


def test_the_pod_is_locked_down() -> None:
    """What the namespace enforces (restricted), and a read-only root."""
    (namespace,) = of_kind("Namespace", BASE / "namespace.yaml")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    security = pod()["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod()["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_pod_never_lands_on_a_virtual_node() -> None:
    """It would wait for itself."""
    required = pod()["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert required["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "type", "operator": "NotIn", "values": ["virtual-kubelet"]}]}
    ]


def test_the_pod_knows_its_address_and_its_namespace() -> None:
    """The InternalIP, and where Secrets are that are named without a namespace."""
    (container,) = pod()["containers"]

    fields = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]}
    assert fields == {
        "POD_IP": "status.podIP",
        "POD_NAMESPACE": "metadata.namespace",
    }


def test_ports_and_files_are_those_of_the_configuration() -> None:
    """The probes' port, the kubelet's, the configuration's own file and the key's folder."""
    (node,) = load_settings([str(BASE / "config.yaml")]).nodes
    (container,) = pod()["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}

    assert ports == {"kubelet": node.server.port, "plain": node.server.plain_port}
    assert all(
        container[probe]["httpGet"]["port"] == "plain"
        for probe in container
        if probe.endswith("Probe")
    )
    assert container["args"] == ["run", "-f", f"{mounts['config']}/config.yaml"]
    assert node.backends[0].config["apiKey"]["file"] == f"{mounts['runpod']}/key"


def test_there_are_replicas_to_elect_a_leader_from() -> None:
    """One falls, the next one leads."""
    assert deployment()["spec"]["replicas"] == 2


def test_the_image_is_this_version() -> None:
    """A release changes both."""
    (image,) = yaml.safe_load((BASE / "kustomization.yaml").read_text())["images"]

    assert (image["name"], image["newTag"]) == (pod()["containers"][0]["image"], __version__)


def test_the_policy_is_about_daemonsets_and_bound() -> None:
    """And never in the way of anything else."""
    file = BASE / "components/no-daemonsets/policy.yaml"
    (policy,) = of_kind("MutatingAdmissionPolicy", file)
    (binding,) = of_kind("MutatingAdmissionPolicyBinding", file)

    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["apiGroups"], rule["resources"]) == (["apps"], ["daemonsets"])
    assert policy["spec"]["failurePolicy"] == "Ignore"
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]


def test_the_readme_makes_the_secret_that_the_deployment_mounts() -> None:
    """Under another name its pods would wait for a volume for ever."""
    readme = (BASE.parents[1] / "README.md").read_text()
    made = re.search(r"create secret generic (\S+) --from-file=(\w+)=", readme)
    [deployment] = of_kind("Deployment", BASE / "deployment.yaml")
    volumes = deployment["spec"]["template"]["spec"]["volumes"]

    assert made is not None
    assert made[1] in [volume["secret"]["secretName"] for volume in volumes if "secret" in volume]
    assert made[2] == "key"


def test_the_webhook_asks_about_each_pod_once_and_stops_nothing() -> None:
    """Either by the pod's label or by its namespace's; kube-system is left out."""
    folder = BASE / "components/webhook"
    (configuration,) = of_kind("MutatingWebhookConfiguration", folder / "configuration.yaml")
    by_pod, by_namespace = configuration["webhooks"]
    (service,) = of_kind("Service", folder / "service.yaml")

    for webhook in (by_pod, by_namespace):
        assert (webhook["failurePolicy"], webhook["timeoutSeconds"]) == ("Ignore", 3)
        found = webhook["clientConfig"]["service"]
        assert (found["name"], found["path"]) == (
            service["metadata"]["name"],
            PATHS[webhook["name"]],
        )
        outside = {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system"],
        }
        assert outside in webhook["namespaceSelector"]["matchExpressions"]
    assert by_pod["objectSelector"] == {"matchLabels": {BURST_LABEL: "true"}}
    absent = {"key": BURST_LABEL, "operator": "DoesNotExist"}
    assert by_namespace["objectSelector"] == {"matchExpressions": [absent]}
    assert by_namespace["namespaceSelector"]["matchLabels"] == {BURST_LABEL: "true"}
    usual = WebhookSettings()
    assert configuration["metadata"]["name"] == usual.configuration
    assert service["metadata"]["name"] == usual.service
