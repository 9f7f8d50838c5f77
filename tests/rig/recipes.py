"""What the test bed is built from, as data. The content of a recipe is its cache key."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, field

DEFAULT_KUBE_VERSION = "1.36.3"
ETCD_VERSION = "3.6.16"
KWOK_VERSION = "0.8.0"
VIRTUAL_KUBELET_VERSION = "1.14.1"
METRICS_SERVER_VERSION = "0.9.0"

KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
CONTROL_PLANE = ("etcd", *KUBERNETES)
PROGRAMS = (*CONTROL_PLANE, "kwok", "virtual-kubelet", "metrics-server")

# Part of every key: raise it when `builds.py` builds differently from the same recipe.
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """One Go module and the programs built from it."""

    name: str
    module: str
    version: str
    programs: dict[str, str] = field(hash=False)
    """Program name -> package path, in the order of building."""
    ldflags: str = "-s -w"
    staging: bool = False
    """Its go.mod replaces modules by folders of its own tree: use the published modules."""
    files: tuple[str, ...] = ()
    """Folders of the module to keep beside the programs."""

    def key(self, go_version: str) -> str:
        """Return the cache key: it changes with the recipe and the Go toolchain alone."""
        content = json.dumps([_FORMAT, go_version, asdict(self)], sort_keys=True)
        return f"{self.name}-{self.version}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def kube_version() -> str:
    """`$KUBE_VERSION` (with or without a leading v), else the default."""
    return os.environ.get("KUBE_VERSION", "").removeprefix("v") or DEFAULT_KUBE_VERSION


def recipe_of(program: str, version: str | None = None) -> Recipe:
    """Return the recipe of a program; `version` is Kubernetes' and matters to kube-* only."""
    if program in KUBERNETES:
        return kubernetes(version or kube_version())
    if program not in _OTHERS:
        raise ValueError(f"unknown program {program!r}; known: {', '.join(PROGRAMS)}")
    return _OTHERS[program]


def kubernetes(version: str) -> Recipe:
    """Return the recipe of a Kubernetes release's control plane."""
    if not re.fullmatch(r"1\.\d+\.\d+", version):
        raise ValueError(f"Kubernetes version {version!r}: want MAJOR.MINOR.PATCH, e.g. 1.36.3")
    variables = "k8s.io/component-base/version"
    stamps = {"gitVersion": f"v{version}", "gitMajor": "1", "gitMinor": version.split(".")[1]}
    return Recipe(
        name="kubernetes",
        module="k8s.io/kubernetes",
        version=version,
        programs={name: f"k8s.io/kubernetes/cmd/{name}" for name in KUBERNETES},
        # Without the stamps a server says it is v0.0.0, and clients take it for an ancient one.
        ldflags=" ".join(["-s -w", *(f"-X {variables}.{k}={v}" for k, v in stamps.items())]),
        staging=True,
    )


_OTHERS = {
    "etcd": Recipe(
        name="etcd",
        module="go.etcd.io/etcd/server/v3",
        version=ETCD_VERSION,
        programs={"etcd": "go.etcd.io/etcd/server/v3"},
    ),
    "kwok": Recipe(
        name="kwok",
        module="sigs.k8s.io/kwok",
        version=KWOK_VERSION,
        programs={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
        files=("kustomize/stage",),
    ),
    "metrics-server": Recipe(
        name="metrics-server",
        module="sigs.k8s.io/metrics-server",
        version=METRICS_SERVER_VERSION,
        programs={"metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server"},
    ),
    "virtual-kubelet": Recipe(
        name="virtual-kubelet",
        module="github.com/virtual-kubelet/virtual-kubelet",
        version=VIRTUAL_KUBELET_VERSION,
        programs={
            "virtual-kubelet": "github.com/virtual-kubelet/virtual-kubelet/cmd/virtual-kubelet"
        },
    ),
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
    return "\n\n".join(lines) + "\n"
