"""A new provider, from the command to a backend that passes the contract, as its author has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
POD = """\
kind: Deployment
apiVersion: apps/v1
metadata: {name: server}
spec:
  template:
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: main, image: "vllm/vllm-openai:v0.11.0", args: [--port, "8000"]}]
"""
PROBING = """
from vk_provider.provider import ProviderContext
from vk_provider.testing.field_probe import Fate, probe
from vk_provider_big_iron.provider import factory

context = ProviderContext("cluster", "node", "backend", "config", "tests/1")
for found in probe(factory({"token": {"env": "UNSET"}}, context)):
    if found.fate is Fate.SILENT:
        print(found.path)
"""


def run(*command: str, folder: Path, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a folder, with what is installed at ``site``."""
    environment = {**os.environ, "PYTHONPATH": str(site)} if site else None
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """What the command has written."""
    done = run(sys.executable, "-m", "vk_provider", "new-provider", "big-iron", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pytest vk-provider-big-iron" in done.stdout
    return tmp_path / "vk-provider-big-iron"


def test_it_installs_is_found_and_passes_the_contract(made: Path, tmp_path: Path) -> None:
    """Every test of it, with nobody having touched a line."""
    site = tmp_path / "site"
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")
    target = ("--target", str(site))
    pip = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check")
    installed = run(*pip, *offline, *target, ".", folder=made)
    assert installed.returncode == 0, installed.stderr

    tested = run(sys.executable, "-m", "pytest", "-q", folder=made, site=site)
    (tmp_path / "pod.yaml").write_text(POD)
    asked = ("explain", "-f", "pod.yaml")
    explained = run(sys.executable, "-m", "vk_provider", *asked, folder=tmp_path, site=site)

    assert tested.returncode == 0, tested.stdout
    assert " passed" in tested.stdout
    assert not {"failed", "skipped", "error"} & set(tested.stdout.split())
    assert "big-iron" in explained.stdout
    assert "vllm/vllm-openai:v0.11.0" in explained.stdout


def test_it_drops_no_field_in_silence(made: Path) -> None:
    """What stands in no list of its is refused."""
    done = run(sys.executable, "-c", PROBING, folder=made, site=made)

    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_it_is_as_clean_as_the_product(made: Path) -> None:
    """Whoever starts from it starts with nothing to tidy up."""
    rules = ("--config", str(ROOT / "pyproject.toml"))
    bases = ("--explicit-package-bases", "--cache-dir", str(made / ".mypy_cache"))
    checks = [
        ("ruff", "format", *rules, "--check", "."),
        ("ruff", "check", *rules, "."),
        ("mypy", "--strict", *bases, "vk_provider_big_iron", "tests"),
    ]

    for check in checks:
        done = run(sys.executable, "-m", *check, folder=made)
        assert done.returncode == 0, f"{check[0]}: {done.stdout}{done.stderr}"
