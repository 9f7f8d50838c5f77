"""The recipes of the test bed: what is in a key, which version is chosen, our go.mod."""

from __future__ import annotations

import dataclasses

import pytest

from tests.rig.recipes import (
    CONTROL_PLANE,
    DEFAULT_KUBE_VERSION,
    KUBERNETES,
    PROGRAMS,
    Recipe,
    kube_version,
    kubernetes,
    published_go_mod,
    recipe_of,
)

RECIPE = kubernetes("1.36.3")
UPSTREAM = """\
module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
\tk8s.io/api v0.0.0
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/component-base => ./staging/src/k8s.io/component-base
\texample.com/other => ../other
)
"""


def test_key_depends_on_content_alone() -> None:
    """Equal recipes share their binaries, also across processes: no randomized hash is in a key."""
    assert kubernetes("1.36.3").key("go1.26.8") == kubernetes("1.36.3").key("go1.26.8")


@pytest.mark.parametrize(
    "changed",
    [
        dataclasses.replace(RECIPE, version="1.36.4"),
        dataclasses.replace(RECIPE, ldflags=""),
        dataclasses.replace(RECIPE, programs={"kube-apiserver": "k8s.io/kubernetes/cmd/other"}),
        dataclasses.replace(RECIPE, files=("docs",)),
        dataclasses.replace(RECIPE, replaced={"k8s.io/kube-openapi": "v0.0.0-1"}),
    ],
    ids=["version", "ldflags", "programs", "files", "replaced"],
)
def test_key_changes_with_each_field(changed: Recipe) -> None:
    """A recipe that builds something else never finds the old binary."""
    assert changed.key("go1.26.8") != RECIPE.key("go1.26.8")


def test_key_changes_with_the_toolchain() -> None:
    """Another Go is another binary."""
    recipe = recipe_of("etcd")

    assert recipe.key("go1.26.8") != recipe.key("go1.27.3")


def test_key_is_readable() -> None:
    """Whoever cleans the cache sees what is in it."""
    assert kubernetes("1.34.4").key("go1.26.8").startswith("kubernetes-1.34.4-")


@pytest.mark.parametrize(
    ("value", "version"),
    [
        ("", DEFAULT_KUBE_VERSION),
        ("1.34.4", "1.34.4"),
        ("v1.37.2", "1.37.2"),
    ],
)
def test_kube_version_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, version: str
) -> None:
    """`KUBE_VERSION=1.34.4 make test` tests against that version."""
    monkeypatch.setenv("KUBE_VERSION", value)

    assert kube_version() == version
    assert recipe_of("kube-scheduler").version == version


def test_kube_version_leaves_other_programs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """etcd and kwok have versions of their own."""
    monkeypatch.setenv("KUBE_VERSION", "1.34.4")

    assert recipe_of("etcd").version != "1.34.4"


@pytest.mark.parametrize("version", ["1.36", "latest", "2.0.0", "1.36.3; rm"])
def test_kube_version_must_be_exact(version: str) -> None:
    """A version that is none is refused before Go is asked for it."""
    with pytest.raises(ValueError, match=r"MAJOR\.MINOR\.PATCH"):
        kubernetes(version)


def test_unknown_program_names_the_known_ones() -> None:
    """A typo is answered with the choice."""
    with pytest.raises(ValueError, match="kube-scheduler"):
        recipe_of("kube-shedule")


def test_every_program_has_a_recipe_that_builds_it() -> None:
    """No name without a recipe, no recipe without its program."""
    assert all(program in recipe_of(program).programs for program in PROGRAMS)
    assert set(CONTROL_PLANE) == {"etcd", *KUBERNETES}


def test_servers_say_their_version() -> None:
    """Without the stamp clients would take the server for v0.0.0."""
    flags = kubernetes("1.34.4").ldflags

    assert "version.gitVersion=v1.34.4" in flags
    assert "version.gitMinor=34" in flags


def test_staging_modules_are_replaced_by_published_ones() -> None:
    """The folders of the release's own tree are not in its module."""
    text = published_go_mod(kubernetes("1.36.3"), UPSTREAM)

    assert "replace k8s.io/api => k8s.io/api v0.36.3" in text
    assert "replace k8s.io/component-base => k8s.io/component-base v0.36.3" in text
    assert "staging" not in text
    assert "other" not in text


def test_language_settings_of_the_release_are_kept() -> None:
    """A dependency's go and godebug lines do not count, so ours say them again."""
    text = published_go_mod(kubernetes("1.36.3"), UPSTREAM)

    assert "go 1.26.0" in text.splitlines()
    assert "godebug default=go1.26" in text.splitlines()


def test_replaced_versions_are_said_again() -> None:
    """A release that replaces a module builds with the version it was tested with."""
    recipe = recipe_of("descheduler")

    text = published_go_mod(recipe, "go 1.26\n")

    for module, version in recipe.replaced.items():
        assert f"replace {module} => {module} {version}" in text
