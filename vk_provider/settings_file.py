"""Reads ``VirtualNode`` documents from files and says everything that is wrong with them at once.

Each complaint names file, line and field path. Providers check their own blocks: they are built
here once, without being entered, which does no I/O.
Fed by the files of ``-f``; feeds the app and ``explain``.
"""

from __future__ import annotations

from collections.abc import Sequence

from vk_provider import __version__
from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.fields import Fields, show
from vk_provider.provider import ProviderContext
from vk_provider.registry import create
from vk_provider.secrets import ReadSecret
from vk_provider.settings import BackendSettings, NodeSettings
from vk_provider.settings_parse import API_VERSION, KIND, parse_node
from vk_provider.yaml_documents import Complaint, Document, read_documents

USER_AGENT = f"vk-provider/{__version__}"

_Parsed = tuple[Document, NodeSettings]


def load_settings(files: Sequence[str]) -> tuple[NodeSettings, ...]:
    """The nodes of all files, in order. Raises ``ConfigError`` with every complaint."""
    complaints: list[Complaint] = []
    parsed: list[_Parsed] = []
    for file in files:
        documents = read_documents(file, complaints)
        if not documents and not any(complaint.file == file for complaint in complaints):
            complaints.append(Complaint(file, 0, f"holds no document; allowed: kind {KIND}"))
        for document in documents:
            parsed += _parse(document, complaints)
    complaints += _clashes(parsed)
    if complaints:
        raise ConfigError(str(complaint) for complaint in _in_order(files, complaints))
    return tuple(node for _, node in parsed)


def provider_context(
    node: NodeSettings,
    backend: BackendSettings,
    cluster_id: str = "",
    read_secret: ReadSecret | None = None,
) -> ProviderContext:
    """What a provider is told about the node it serves; offline without the last two."""
    return ProviderContext(
        cluster_id=cluster_id or node.cluster_id or "",
        node_name=node.name,
        backend=backend.name,
        config_path=backend.config_path,
        user_agent=USER_AGENT,
        read_secret=read_secret,
    )


def _parse(document: Document, complaints: list[Complaint]) -> list[_Parsed]:
    problems: list[FieldProblem] = []
    node = None
    if not isinstance(document.value, dict):
        message = f"found {show(document.value)}, allowed: a document of kind {KIND}"
        complaints.append(Complaint(document.file, document.line, message))
        return []
    if _is_ours(document.value, problems):
        node = parse_node(document.value, problems, document.file)
        for backend in node.backends:
            problems += _provider_problems(node, backend)
    for problem in problems:
        line = document.line_of(problem.path)
        complaints.append(Complaint(document.file, line, str(problem)))
    return [(document, node)] if node is not None else []


def _is_ours(value: dict[str, object], problems: list[FieldProblem]) -> bool:
    """Another kind's fields mean something else, so nothing more is said about them."""
    before = len(problems)
    head = Fields(value, "", problems)
    head.text("apiVersion", choices=(API_VERSION,))
    head.text("kind", choices=(KIND,))
    return len(problems) == before


def _provider_problems(node: NodeSettings, backend: BackendSettings) -> list[FieldProblem]:
    # A backend that names no provider, or one of the wrong type, is complained about already.
    if not backend.provider:
        return []
    try:
        create(backend, provider_context(node, backend))
    except ConfigError as error:
        return [
            problem
            if isinstance(problem, FieldProblem)
            else FieldProblem(backend.config_path, problem)
            for problem in error.problems
        ]
    return []


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
