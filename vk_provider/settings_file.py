"""Reads ``VirtualNode`` and ``Bursting`` documents and says all that is wrong with them at once.

Each complaint names file, line and field path. Providers check their own blocks: they are built
here once, without being entered, which does no I/O.
Fed by the files of ``-f``; feeds the app and ``explain``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vk_provider import __version__
from vk_provider.doubts import Doubt
from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.fields import Fields, show
from vk_provider.provider import ProviderContext, ReadClaim, SupportsDoubts
from vk_provider.registry import create, foreign_code
from vk_provider.secrets import ReadSecret
from vk_provider.settings import BackendSettings, NodeSettings
from vk_provider.settings_bursting import (
    BURSTING_KIND,
    BurstingSettings,
    parse_bursting_document,
)
from vk_provider.settings_parse import API_VERSION, KIND, parse_node
from vk_provider.yaml_documents import Complaint, Document, read_documents

USER_AGENT = f"vk-provider/{__version__}"

_KINDS = (KIND, BURSTING_KIND)
_Parsed = tuple[Document, NodeSettings]
_Ruled = tuple[Document, BurstingSettings]


@dataclass(frozen=True, slots=True)
class Settings:
    """All of one process. ``bursting`` is None where nothing is asked of the bursting side; the
    defaults where a node takes part and no document says how. ``doubts``: what is valid and may
    yet be a slip, a sentence each, with its place."""

    nodes: tuple[NodeSettings, ...]
    bursting: BurstingSettings | None = None
    doubts: tuple[str, ...] = ()


def load_settings(files: Sequence[str]) -> Settings:
    """What all files ask for, nodes in order. Raises ``ConfigError`` with every complaint."""
    complaints: list[Complaint] = []
    documents: list[Document] = []
    for file in files:
        found = read_documents(file, complaints)
        if not found and not any(complaint.file == file for complaint in complaints):
            kinds = " or ".join(_KINDS)
            complaints.append(Complaint(file, 0, f"holds no document; allowed: kind {kinds}"))
        documents += found
    return settings_of(documents, complaints, files)


def is_ours(document: Document) -> bool:
    """Whether a document says that it is of this configuration."""
    value = document.value
    group = API_VERSION.partition("/")[0]
    return isinstance(value, dict) and (
        value.get("kind") in _KINDS or str(value.get("apiVersion")).partition("/")[0] == group
    )


def settings_of(
    documents: Sequence[Document], complaints: list[Complaint], files: Sequence[str]
) -> Settings:
    """What documents of these files ask for. Raises ``ConfigError`` with every complaint, those
    that there are already included."""
    nodes: list[_Parsed] = []
    rules: list[_Ruled] = []
    for document in documents:
        _sort(_parse(document, complaints), document, nodes, rules)
    complaints += _clashes(nodes)
    complaints += _one_rule(rules, nodes, complaints)
    complaints += _too_hasty(rules, nodes)
    told = tuple(str(complaint) for complaint in _in_order(files, complaints))
    if any(not complaint.is_doubt for complaint in complaints):
        raise ConfigError(told)
    return Settings(tuple(node for _, node in nodes), _bursting(nodes, rules), told)


def _sort(
    found: NodeSettings | BurstingSettings | None,
    document: Document,
    nodes: list[_Parsed],
    rules: list[_Ruled],
) -> None:
    if isinstance(found, NodeSettings):
        nodes.append((document, found))
    elif found is not None:
        rules.append((document, found))


def _bursting(nodes: Sequence[_Parsed], rules: Sequence[_Ruled]) -> BurstingSettings | None:
    if rules:
        return rules[0][1]
    takes_part = any(node.bursting.gate_enabled for _, node in nodes)
    return BurstingSettings() if takes_part else None


def provider_context(
    node: NodeSettings,
    backend: BackendSettings,
    cluster_id: str = "",
    read_secret: ReadSecret | None = None,
    read_claim: ReadClaim | None = None,
    may_act: Callable[[], bool] = lambda: True,
) -> ProviderContext:
    """What a provider is told about the node it serves; offline without the last four."""
    return ProviderContext(
        cluster_id=cluster_id or node.cluster_id or "",
        node_name=node.name,
        backend=backend.name,
        config_path=backend.config_path,
        user_agent=USER_AGENT,
        read_secret=read_secret,
        read_claim=read_claim,
        may_act=may_act,
    )


def _parse(
    document: Document, complaints: list[Complaint]
) -> NodeSettings | BurstingSettings | None:
    problems: list[FieldProblem] = []
    if not isinstance(document.value, dict):
        kinds = " or ".join(_KINDS)
        message = f"found {show(document.value)}, allowed: a document of kind {kinds}"
        complaints.append(Complaint(document.file, document.line, message))
        return None
    found = _of_its_kind(document, problems)
    for problem in problems:
        line = document.line_of(problem.path)
        is_doubt = isinstance(problem, Doubt)
        complaints.append(Complaint(document.file, line, str(problem), is_doubt))
    return found


def _of_its_kind(
    document: Document, problems: list[FieldProblem]
) -> NodeSettings | BurstingSettings | None:
    if not _is_ours(document.value, problems):
        return None
    if document.value["kind"] == BURSTING_KIND:
        return parse_bursting_document(document.value, problems, document.file)
    node = parse_node(document.value, problems, document.file)
    for backend in node.backends:
        problems += _provider_problems(node, backend)
    return node


def _is_ours(value: dict[str, object], problems: list[FieldProblem]) -> bool:
    """Another kind's fields mean something else, so nothing more is said about them."""
    before = len(problems)
    head = Fields(value, "", problems)
    head.text("apiVersion", choices=(API_VERSION,))
    head.text("kind", choices=_KINDS)
    return len(problems) == before


def _provider_problems(node: NodeSettings, backend: BackendSettings) -> list[FieldProblem]:
    # A backend that names no provider, or one of the wrong type, is complained about already.
    if not backend.provider:
        return []
    try:
        provider = create(backend, provider_context(node, backend))
        if not isinstance(provider, SupportsDoubts):
            return []
        with foreign_code(backend.provider, "failed on its configuration"):
            return list(provider.doubts())
    except ConfigError as error:
        return [
            problem
            if isinstance(problem, FieldProblem)
            else FieldProblem(backend.config_path, problem)
            for problem in error.problems
        ]


def _clashes(parsed: Sequence[_Parsed]) -> list[Complaint]:
    """What two nodes of one process can't share, and the one port that they must."""
    complaints = []
    for index, (document, node) in enumerate(parsed):
        own = _of_its_own(node)
        for earlier, other in parsed[:index]:
            # Two nodes of one name would clash in whatever is derived from it, too.
            paths = ["metadata.name"] if other.name == node.name else list(own)
            for path in paths:
                if own.get(path) is not None and own[path] == _of_its_own(other).get(path):
                    place = f"{earlier.file}:{earlier.line_of(path)}"
                    message = f"found {show(own[path])}, which the node at {place} has already"
                    complaints.append(_complain(document, path, f"{message}; allowed: its own"))
        wanted, found = parsed[0][1].server.plain_port, node.server.plain_port
        if found != wanted:
            message = f"found {found}, allowed: {wanted} (one plain port serves all nodes)"
            complaints.append(_complain(document, "spec.server.plainPort", message))
    return complaints


def _one_rule(
    rules: Sequence[_Ruled], nodes: Sequence[_Parsed], complaints: Sequence[Complaint]
) -> list[Complaint]:
    """One document of kind Bursting at most, and never without a node."""
    found = []
    for document, _ in rules[1:]:
        first = rules[0][0]
        message = f"found a second document of kind {BURSTING_KIND}, the first is at"
        place = f"{first.file}:{first.line}; allowed: one"
        found.append(Complaint(document.file, document.line, f"{message} {place}"))
    if rules and not nodes and all(complaint.is_doubt for complaint in complaints):
        document = rules[0][0]
        message = f"no document of kind {KIND} beside it; allowed: at least one"
        found.append(Complaint(document.file, document.line, message))
    return found


def _too_hasty(rules: Sequence[_Ruled], nodes: Sequence[_Parsed]) -> list[Complaint]:
    """A node must not take a controller for dead between two of its signs of life."""
    every = rules[0][1].gate.heartbeat_every if rules else BurstingSettings().gate.heartbeat_every
    path = "spec.bursting.gate.deadAfterSeconds"
    return [
        _complain(
            document,
            path,
            f"found {node.bursting.dead_after_seconds:g}, allowed: at least twice "
            f"spec.gate.heartbeatSeconds of kind {BURSTING_KIND} ({every:g})",
        )
        for document, node in nodes
        if node.bursting.gate_enabled and node.bursting.dead_after_seconds < 2 * every
    ]


def _of_its_own(node: NodeSettings) -> dict[str, object]:
    """What no other node of the process may have; None where there is nothing to clash."""
    lease = node.leader_election
    return {
        "metadata.name": node.name or None,
        # Port 0 is a free one, picked at start.
        "spec.server.port": node.server.port or None,
        "spec.leaderElection.name": (
            f"{lease.namespace or ''}/{lease.name}".lstrip("/") if lease.enabled else None
        ),
    }


def _complain(document: Document, path: str, message: str) -> Complaint:
    return Complaint(document.file, document.line_of(path), str(FieldProblem(path, message)))


def _in_order(files: Sequence[str], complaints: list[Complaint]) -> list[Complaint]:
    """By file as given, then by line; each only once."""
    order = {file: index for index, file in enumerate(dict.fromkeys(files))}
    return sorted(dict.fromkeys(complaints), key=lambda one: (order[one.file], one.line))
