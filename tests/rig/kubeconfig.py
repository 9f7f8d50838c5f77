"""Writes kubeconfig files: self-contained, readable by their owner only."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from tests.rig.pki import Pair


def with_certificate(path: Path, url: str, ca_file: Path, pair: Pair) -> Path:
    """Write a kubeconfig with a client certificate; return its path."""
    user = {"client-certificate-data": _encoded(pair.certificate)}
    return _write(path, url, ca_file, user | {"client-key-data": _encoded(pair.key)})


def with_token(path: Path, url: str, ca_file: Path, token: str) -> Path:
    """Write a kubeconfig with a bearer token; return its path."""
    return _write(path, url, ca_file, {"token": token})


def _write(path: Path, url: str, ca_file: Path, user: Mapping[str, str]) -> Path:
    cluster = {"server": url, "certificate-authority-data": _encoded(ca_file)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bed", "cluster": cluster}],
        "users": [{"name": "user", "user": dict(user)}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "user"}}],
        "current-context": "bed",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))  # JSON is YAML
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
