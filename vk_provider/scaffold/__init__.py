"""A new provider's first files: written from templates that a test keeps passing the contract.

Fed by ``vk-provider new-provider``; writes a folder that installs and tests itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from vk_provider.faults import ConfigError

__all__ = ["new_provider"]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 30
_PLACES = {
    "pyproject.toml": "pyproject.toml",
    "client.py": "{package}/client.py",
    "translate.py": "{package}/translate.py",
    "provider.py": "{package}/provider.py",
    "test_contract.py": "tests/test_contract.py",
}


def new_provider(name: str, into: Path) -> tuple[Path, ...]:
    """Write a provider called ``name`` below ``into``; the files that were written.

    Raises:
        ConfigError: the name can't be one, or a file is there already. Nothing is written then.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        allowed = f"at most {_LONGEST} small letters and digits, in words joined by '-'"
        raise ConfigError([f'the name of a provider: found "{name}", allowed: {allowed}'])
    texts = {into / place: text for place, text in _rendered(name)}
    there = [path for path in texts if path.exists()]
    if there:
        raise ConfigError([f"{path} is there already; choose another --into" for path in there])
    folders = dict.fromkeys(folder for path in texts for folder in (into, path.parent))
    files = [folder for folder in folders if folder.is_file()]
    if files:
        raise ConfigError([f"{path} is no folder; choose another --into" for path in files])
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tuple(texts)


def _rendered(name: str) -> Iterator[tuple[str, str]]:
    package = f"vk_provider_{name.replace('-', '_')}"
    title = "".join(word.capitalize() for word in name.split("-"))
    # The longest word first: the package's name has the provider's in it.
    words = {
        "vk_provider_acme": package,
        "ACME_": f"{name.replace('-', '_').upper()}_",
        "Acme": title,
        "acme": name,
    }
    for template, place in _PLACES.items():
        text = (resources.files(__name__) / "template" / f"{template}.in").read_text("utf-8")
        for word, replacement in words.items():
            text = text.replace(word, replacement)
        yield place.format(package=package), text
