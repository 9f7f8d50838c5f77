"""The pages as text: their words, their rows, and what options change.

Fed by the providers' own code; feeds ``docs/`` and the test that keeps it fresh.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vk_provider_kubernetes import factory as kubernetes
from vk_provider_kubernetes.rules import Action, Rule, coverage
from vk_provider_modal import factory as modal
from vk_provider_runpod import factory as runpod

from vk_provider.provider import Provider, ProviderContext
from vk_provider.testing.field_probe import Fate, Found, probe
from vk_provider.testing.field_samples import WORD

DOCS = Path(__file__).parents[2] / "docs"
CONTEXT = ProviderContext("cluster", "node", "backend", "config", "docs")
KEY = {"env": "UNSET"}
Options = Mapping[str, Mapping[str, Any]]
RUNPOD: Options = {
    "": {},
    "filesWrapper: true": {"filesWrapper": True},
    "networkVolumeId: VOLUME": {"networkVolumeId": "volume"},
}
MODAL: Options = {
    "": {},
    "filesWrapper: true": {"filesWrapper": True},
    "volumes: {CLAIM: VOLUME}": {"volumes": {"models": "a", "other-models": "b"}},
    "forceBuild: true": {"forceBuild": True},
}
"""What is written of a configuration -> its keys. The empty one comes first."""

FATES: Mapping[str, str] = {
    Fate.SENT: "goes into the create request as it stands",
    Fate.REWRITTEN: "goes into it in the backend's own terms",
    Fate.RESOLVED: "what it refers to at home is looked up and sent",
    Fate.IGNORED: "has no effect there; `explain` says so in a note",
    Fate.REFUSED: "fails the pod with `Unsupported` and its path, before anything is bought",
    Fate.HOME: "needs no backend",
}
_ACTIONS: Mapping[Action, Fate] = {
    Action.SEND: Fate.SENT,
    Action.REWRITE: Fate.REWRITTEN,
    Action.RESOLVE: Fate.RESOLVED,
    Action.IGNORE: Fate.IGNORED,
    Action.REJECT: Fate.REFUSED,
}
_HEAD = """# Fields of a pod: {title}

What becomes of each field of a pod on a backend of provider `{name}`. Made from the code by `make
fields`; a test fails when it is out of date. A field inside of one that is named here fares as that
one does. Fields of `metadata` are home's; labels and annotations reach a container through the
downward API.

| word | the field |
| --- | --- |
{words}

{counts}
"""
_TABLE = "\n| field | | in its own words |\n| --- | --- | --- |\n"


def page(name: str) -> str:
    """One page of :data:`PAGES`."""
    return PAGES[name]()


def found_at(make: Callable[[Mapping[str, Any]], Provider], options: Options) -> list[list[Found]]:
    """What a provider makes of every field under each configuration."""
    return [probe(make(config)) for config in options.values()]


def make_runpod(config: Mapping[str, Any]) -> Provider:
    """RunPod with this configuration, and no account."""
    return runpod({"apiKey": KEY, "gpuTypes": ["NVIDIA L40S"], **config}, CONTEXT)


def make_modal(config: Mapping[str, Any]) -> Provider:
    """Modal with this configuration, and no account."""
    return modal({"tokenId": KEY, "tokenSecret": KEY, **config}, CONTEXT)


def make_kubernetes() -> Provider:
    """Another cluster with claims of two names, and no connection."""
    claims = {"default/models": "a", "default/other-models": "b"}
    config = {"kubeconfig": "/nowhere", "namespace": "instances", "volumeClaims": claims}
    return kubernetes(config, CONTEXT)


def _probed(
    name: str, title: str, make: Callable[[Mapping[str, Any]], Provider], options: Options
) -> str:
    plain, *others = found_at(make, options)
    text = _head(name, title, plain) + _TABLE + "".join(_rows(plain))
    for words, found in zip(list(options)[1:], others, strict=True):
        changed = [each for each in found if each not in plain]
        text += f"\n## With `{words}`\n{_TABLE}{''.join(_rows(changed))}"
    return text


def _kubernetes() -> str:
    # What is inside of init containers fares as in containers.
    rows = [row for row in coverage() if not row[0].startswith("spec.initContainers.")]
    found = list(_merged(rows))
    return _head("kubernetes", "another cluster", found) + _TABLE + "".join(_rows(found))


def _merged(rows: Sequence[tuple[str, Rule]]) -> Iterator[Found]:
    """Each row, but those whose fields all fare alike as one."""
    skipped = ""
    for index, (path, rule) in enumerate(rows):
        if skipped and path.startswith(skipped):
            continue
        prefix = f"{path}."
        inside = [_found(*each) for each in rows[index + 1 :] if each[0].startswith(prefix)]
        own = _found(path, rule)
        if all((each.fate, each.why) == (own.fate, own.why) for each in inside):
            skipped = prefix
            yield own
        elif rule.action is not Action.SEND:
            yield own


def _found(path: str, rule: Rule) -> Found:
    return Found(path, _ACTIONS[rule.action], rule.why)


def _head(name: str, title: str, found: Sequence[Found]) -> str:
    there = [fate for fate in FATES if any(each.fate == fate for each in found)]
    words = "\n".join(f"| {fate} | {FATES[fate]} |" for fate in there)
    numbers = (f"{sum(each.fate == fate for each in found)} {fate}" for fate in there)
    counts = f"{len(found)} rows: {', '.join(numbers)}."
    return _HEAD.format(name=name, title=title, words=words, counts=counts)


def _rows(found: Iterable[Found]) -> Iterator[str]:
    """One row a field; kinds of volumes and fields of home that fare alike share one."""
    alike: dict[tuple[str, Fate, str], list[str]] = {}
    for each in found:
        parent, dot, _ = each.path.rpartition(".")
        is_shared = parent == "spec.volumes" or each.fate is Fate.HOME
        key = (f"{parent}{dot}" if is_shared else each.path, each.fate, each.why)
        alike.setdefault(key, []).append(each.path.removeprefix(key[0]))
    for (path, fate, why), names in alike.items():
        yield f"| `{path}{', '.join(names)}` | {fate} | {_cell(why)} |\n"


def _cell(text: str) -> str:
    """Without the value that was only tried."""
    bare = re.sub(r'^found (".*?"|[^;,]+)[;,] ', "", text).replace(WORD, "...")
    return bare.replace("|", "\\|")


PAGES: Mapping[str, Callable[[], str]] = {
    "fields-kubernetes.md": _kubernetes,
    "fields-modal.md": lambda: _probed("modal", "Modal", make_modal, MODAL),
    "fields-runpod.md": lambda: _probed("runpod", "RunPod", make_runpod, RUNPOD),
}
"""File in ``docs/`` -> its text."""
