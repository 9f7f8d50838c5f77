"""What the test bed is built from, as data. The content of a recipe is its cache key."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, field
from typing import Any

DEFAULT_KUBE_VERSION = "1.36.3"
ETCD_VERSION = "3.6.16"
KWOK_VERSION = "0.8.0"
VIRTUAL_KUBELET_VERSION = "1.14.1"
METRICS_SERVER_VERSION = "0.9.0"
COREDNS_VERSION = "1.12.4"
KUEUE_VERSION = "0.17.0"
DESCHEDULER_VERSION = "0.36.0"

KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
CONTROL_PLANE = ("etcd", *KUBERNETES)
# A real node, what its test images hold, and the official suite with its runner.
NODE = ("kubelet", "kube-proxy", "agnhost", "nonewprivs", "e2e.test", "ginkgo")
PROGRAMS = (
    *CONTROL_PLANE,
    *NODE,
    "coredns",
    "kwok",
    "virtual-kubelet",
    "metrics-server",
    "kueue",
    "descheduler",
)

# Part of every key: raise it when `builds.py` builds differently from the same recipe.
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """One Go module and the programs built from it."""

    name: str
    module: str
    version: str
    programs: dict[str, str] = field(hash=False)
    """Program name -> package path, in the order of building.

    A name that ends in `.test` is the package's tests. A package of another module is built in the
    version that the recipe's own module asks for.
    """
    ldflags: str = "-s -w"
    staging: bool = False
    """Its go.mod replaces modules by folders of its own tree: use the published modules."""
    files: tuple[str, ...] = ()
    """Folders of the module to keep beside the programs."""
    replaced: dict[str, str] = field(default_factory=dict, hash=False)
    """Module -> version that the release's own go.mod puts in its place: Go heeds only ours."""

    def key(self, go_version: str) -> str:
        """Return the cache key: it changes with the recipe and the Go toolchain alone."""
        recipe = {
            name: value for name, value in asdict(self).items() if name != "replaced" or value
        }
        content = json.dumps([_FORMAT, go_version, recipe], sort_keys=True)
        return f"{self.name}-{self.version}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def kube_version() -> str:
    """`$KUBE_VERSION` (with or without a leading v), else the default."""
    return os.environ.get("KUBE_VERSION", "").removeprefix("v") or DEFAULT_KUBE_VERSION


def recipe_of(program: str, version: str | None = None) -> Recipe:
    """Return the recipe of a program; `version` is Kubernetes' and matters to kube-* only."""
    if program in KUBERNETES:
        return kubernetes(version or kube_version())
    if program in NODE:
        return kubernetes_node(version or kube_version())
    if program not in _OTHERS:
        raise ValueError(f"unknown program {program!r}; known: {', '.join(PROGRAMS)}")
    return _OTHERS[program]


def kubernetes(version: str) -> Recipe:
    """Return the recipe of a Kubernetes release's control plane."""
    programs = {name: f"k8s.io/kubernetes/cmd/{name}" for name in KUBERNETES}
    return _release("kubernetes", version, programs)


def kubernetes_node(version: str) -> Recipe:
    """Return the recipe of a release's node programs and of its official suite."""
    packages = {
        "kubelet": "k8s.io/kubernetes/cmd/kubelet",
        "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
        "agnhost": "k8s.io/kubernetes/test/images/agnhost",
        "nonewprivs": "k8s.io/kubernetes/test/images/nonewprivs",
        "e2e.test": "k8s.io/kubernetes/test/e2e",
        "ginkgo": "github.com/onsi/ginkgo/v2/ginkgo",
    }
    return _release("kubernetes-node", version, packages)


def _release(name: str, version: str, programs: dict[str, str]) -> Recipe:
    if not re.fullmatch(r"1\.\d+\.\d+", version):
        raise ValueError(f"Kubernetes version {version!r}: want MAJOR.MINOR.PATCH, e.g. 1.36.3")
    variables = "k8s.io/component-base/version"
    stamps = {"gitVersion": f"v{version}", "gitMajor": "1", "gitMinor": version.split(".")[1]}
    return Recipe(
        name=name,
        module="k8s.io/kubernetes",
        version=version,
        programs=programs,
        # Without the stamps a server says it is v0.0.0, and clients take it for an ancient one.
        ldflags=" ".join(["-s -w", *(f"-X {variables}.{k}={v}" for k, v in stamps.items())]),
        staging=True,
    )


def _single(name: str, version: str, module: str, package: str = "", **more: Any) -> Recipe:
    """One program, whose ``package`` is a folder of its module."""
    return Recipe(name, module, version, {name: module + package}, **more)


_OTHERS = {
    recipe.name: recipe
    for recipe in (
        _single("etcd", ETCD_VERSION, "go.etcd.io/etcd/server/v3"),
        _single("kwok", KWOK_VERSION, "sigs.k8s.io/kwok", "/cmd/kwok", files=("kustomize/stage",)),
        _single("coredns", COREDNS_VERSION, "github.com/coredns/coredns"),
        _single(
            "metrics-server",
            METRICS_SERVER_VERSION,
            "sigs.k8s.io/metrics-server",
            "/cmd/metrics-server",
        ),
        _single(
            "kueue",
            KUEUE_VERSION,
            "sigs.k8s.io/kueue",
            "/cmd/kueue",
            files=("config/components/crd/bases", "config/components/webhook"),
        ),
        _single(
            "descheduler",
            DESCHEDULER_VERSION,
            "sigs.k8s.io/descheduler",
            "/cmd/descheduler",
            # Else it can't tell which Kubernetes it is for, and says so at every start.
            ldflags=f"-s -w -X sigs.k8s.io/descheduler/pkg/version.version=v{DESCHEDULER_VERSION}",
            replaced={"k8s.io/kube-openapi": "v0.0.0-20260512234627-ef417d054102"},
        ),
        _single(
            "virtual-kubelet",
            VIRTUAL_KUBELET_VERSION,
            "github.com/virtual-kubelet/virtual-kubelet",
            "/cmd/virtual-kubelet",
        ),
    )
}


def published_go_mod(recipe: Recipe, upstream: str) -> str:
    """Return our go.mod for a recipe; `upstream` is the text of the release's own go.mod.

    A dependency's `replace` and `godebug` lines do not count for us, so those of a staging tree
    are said again here, by version instead of by folder.
    """
    kept = [line for line in upstream.splitlines() if line.startswith(("go ", "godebug "))]
    minor = "0." + recipe.version.split(".", 1)[1]
    staged = re.findall(r"^\t(k8s\.io/[a-z-]+) => \./staging/", upstream, re.MULTILINE)
    lines = ["module example.invalid/testbed", *kept]
    lines += [f"require {recipe.module} v{recipe.version}"]
    lines += [f"replace {module} => {module} v{minor}" for module in staged]
    lines += [f"replace {module} => {module} {at}" for module, at in recipe.replaced.items()]
    return "\n\n".join(lines) + "\n"
