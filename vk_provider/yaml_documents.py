"""YAML text becomes documents that remember on which line each field stands.

Safe YAML only; a key given twice is a mistake, since one of the two would silently win.
Fed by files a person wrote; feeds :mod:`vk_provider.settings_file` and
:mod:`vk_provider.offline.workloads`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml
from yaml.constructor import ConstructorError

# A password may begin with *, & or !: then PyYAML takes it for a name, and shows it.
_NAMED_THERE = re.compile(r"(alias|anchor|for the tag|tag handle) '(?!tag:yaml\.org)[^']*'")
_STEP = re.compile(r"\[([^\]]+)\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file, as plain values."""

    file: str
    line: int
    value: Any
    _node: yaml.Node = field(repr=False, compare=False)

    def line_of(self, path: str) -> int:
        """The line of a field path, or of its nearest parent if the field itself is absent."""
        line, node = self.line, self._node
        for bracketed, plain in _STEP.findall(path):
            step = _below(node, bracketed or plain)
            if step is None:
                break
            line, node = step
        return line


@dataclass(frozen=True, slots=True, order=True)
class Complaint:
    """What is wrong on one line of one file, or (``is_doubt``) may be."""

    file: str
    line: int
    message: str
    is_doubt: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {'warning: ' if self.is_doubt else ''}{self.message}"


class _Loader(yaml.SafeLoader):
    """Safe YAML in which a date is a text, as it is everywhere in Kubernetes."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node. Raises ConstructorError also where PyYAML lets its own slip out."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError) as error:
            # 0x_, !!bool maybe, a number of thousands of digits: matched, and then not understood.
            kind = node.tag.rpartition(":")[2]
            message = f"found a value that is no {kind} (put it in quotes if it is a text)"
            raise ConstructorError(None, None, message, node.start_mark) from error


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_documents(file: str, complaints: list[Complaint]) -> list[Document]:
    """The documents of a file (``-`` is standard input); what can't be read becomes complaints."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        complaints.append(Complaint(file, 0, f"can't be read: {error.strerror}"))
        return []
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        complaints.append(Complaint(file, line, "is not UTF-8 text"))
        return []
    return parse_documents(file, text, complaints)


def parse_documents(file: str, text: str, complaints: list[Complaint]) -> list[Document]:
    """The documents of a text, without the empty ones; a syntax error ends the file."""
    documents = []
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = cast(yaml.Node, loader.get_node())
            twice = list(_keys_given_twice(node))
            complaints.extend(Complaint(file, line, message) for line, message in twice)
            value = loader.construct_document(node)
            if value is not None:
                documents.append(Document(file, node.start_mark.line + 1, value, node))
    except yaml.MarkedYAMLError as error:
        complaints.append(_syntax_complaint(file, error))
    except yaml.YAMLError as error:
        complaints.append(Complaint(file, 0, f"not YAML: {' '.join(str(error).split())}"))
    except RecursionError:
        complaints.append(Complaint(file, 0, "not YAML that can be used: nested too deeply"))
    return documents


def _syntax_complaint(file: str, error: yaml.MarkedYAMLError) -> Complaint:
    mark = error.problem_mark or error.context_mark
    parts = (part for part in (error.context, error.problem, error.note) if part)
    words = without_names(", ".join(parts))
    return Complaint(file, mark.line + 1 if mark else 0, f"not YAML: {words}")


def without_names(words: str) -> str:
    """PyYAML's words without the aliases, anchors and tags that it found, which may be secrets."""
    return _NAMED_THERE.sub(r"\1 (put it in quotes if it is a text)", words)


def _keys_given_twice(root: yaml.Node) -> Iterator[tuple[int, str]]:
    # Anchors make the tree a graph, so each node is looked at once.
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            waiting.extend(value for _, value in node.value)
            yield from _twice_in(node)


def _twice_in(mapping: yaml.MappingNode) -> Iterator[tuple[int, str]]:
    first: dict[str, int] = {}
    for key, _ in mapping.value:
        if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
            continue
        line = key.start_mark.line + 1
        if key.value in first:
            yield line, f'key "{key.value}" is given twice, first on line {first[key.value]}'
        first.setdefault(key.value, line)


def _below(node: yaml.Node, step: str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == step:
                return key.start_mark.line + 1, value
    elif isinstance(node, yaml.SequenceNode) and step.isdecimal() and int(step) < len(node.value):
        entry = node.value[int(step)]
        return entry.start_mark.line + 1, entry
    return None
