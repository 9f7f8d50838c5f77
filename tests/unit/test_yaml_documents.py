"""YAML documents: every field knows its line, and every mistake has one."""

from pathlib import Path

import pytest

from vk_provider.yaml_documents import Complaint, Document, parse_documents, read_documents

TEXT = """\
# comment
kind: A
spec:
  list:
    - name: x
      labels: {a/b: c}
    - name: y
---
kind: B
"""


def parsed(text: str) -> tuple[list[Document], list[str]]:
    """Documents and complaints as text."""
    complaints: list[Complaint] = []
    return parse_documents("f.yaml", text, complaints), [str(each) for each in complaints]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 2),
        ("kind", 2),
        ("spec.list", 4),
        ("spec.list[0].name", 5),
        ("spec.list[0].labels[a/b]", 6),
        ("spec.list[1].name", 7),
        ("spec.list[1].absent", 7),
        ("spec.list[9]", 4),
        ("spec.list.name", 4),
        ("absent.altogether", 2),
    ],
)
def test_a_path_leads_to_its_line(path: str, line: int) -> None:
    """An absent field has the line of its nearest parent."""
    documents, _ = parsed(TEXT)

    assert documents[0].line_of(path) == line


def test_documents_are_told_apart_and_empty_ones_left_out() -> None:
    """A trailing separator makes no document."""
    documents, complaints = parsed(TEXT + "---\n")

    assert [(each.value["kind"], each.line) for each in documents] == [("A", 2), ("B", 9)]
    assert complaints == []


def test_a_key_given_twice_is_a_complaint() -> None:
    """At any depth, with both lines."""
    _, complaints = parsed("a: 1\nb:\n  - c: 1\n    d: 2\n    c: 3\n")

    assert complaints == ['f.yaml:5: key "c" is given twice, first on line 3']


def test_merge_keys_and_anchors_are_understood() -> None:
    """A merge may be given more than once; an anchor is looked at once."""
    documents, complaints = parsed("a: &x {k: 1}\nb: {<<: *x, l: 2}\nc: [*x, *x]\n? [1]\n: v\n")

    assert complaints == ["f.yaml:4: not YAML: while constructing a mapping, found unhashable key"]
    documents, complaints = parsed("a: &x {k: 1}\nb: {<<: *x, l: 2}\nc: [*x, *x]\n")
    assert complaints == []
    assert documents[0].value == {"a": {"k": 1}, "b": {"k": 1, "l": 2}, "c": [{"k": 1}, {"k": 1}]}


def test_a_date_stays_a_text() -> None:
    """As in Kubernetes, whose API knows no dates in YAML."""
    documents, _ = parsed("day: 2026-01-02\n")

    assert documents[0].value == {"day": "2026-01-02"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: [1\nb: 2\n", "f.yaml:2: not YAML: while parsing a flow sequence, expected ',' or ']'"),
        ("a: b: c\n", "f.yaml:1: not YAML: mapping values are not allowed here"),
        ("a: !!python/object:os.system {}\n", "f.yaml:1: not YAML: could not determine a constr"),
        ("a: *abc\n", "f.yaml:1: not YAML: found undefined alias (put it in quotes if it is"),
        ("a: !abc x\n", "f.yaml:1: not YAML: could not determine a constructor for the tag (put"),
        ("a: !abc!x y\n", "f.yaml:1: not YAML: while parsing a node, found undefined tag handle ("),
        ("- &abc x\n- &abc y\n- *abcd\n", "f.yaml:2: not YAML: found duplicate anchor (pu"),
        ("a: \x07\n", "f.yaml: not YAML: unacceptable character #x0007"),
        ("[" * 1000, "f.yaml: not YAML that can be used: nested too deeply"),
    ],
)
def test_what_is_no_yaml_has_a_line_where_there_is_one(text: str, complaint: str) -> None:
    """Syntax, unsafe tags, control characters, and a file made to crash us."""
    _, complaints = parsed(text)

    assert [each[: len(complaint)] for each in complaints] == [complaint]


def test_documents_before_a_syntax_error_are_kept() -> None:
    """Their mistakes are worth telling as well."""
    documents, complaints = parsed("a: 1\n---\na: [\n")

    assert len(documents) == 1
    assert len(complaints) == 1


def test_a_file_is_read(tmp_path: Path) -> None:
    """A byte order mark, as some editors leave it, is no part of the text."""
    file = tmp_path / "f.yaml"
    file.write_bytes(b"\xef\xbb\xbfkind: A\n")
    complaints: list[Complaint] = []

    assert [each.value for each in read_documents(str(file), complaints)] == [{"kind": "A"}]
    assert complaints == []


def test_what_can_not_be_read_is_a_complaint(tmp_path: Path) -> None:
    """Absent, a folder, not text."""
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"a: 1\nb: \xff\n")
    complaints: list[Complaint] = []

    for file in (str(tmp_path / "absent"), str(tmp_path), str(binary)):
        read_documents(file, complaints)

    assert [str(each).removeprefix(str(tmp_path)) for each in complaints] == [
        "/absent: can't be read: No such file or directory",
        ": can't be read: Is a directory",
        "/binary.yaml:2: is not UTF-8 text",
    ]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("0x_", "int"),
        pytest.param("9" * 5000, "int", id="digits"),
        ("!!int x", "int"),
        ("!!float x", "float"),
        ("!!bool maybe", "bool"),
        ("!!timestamp x", "timestamp"),
    ],
)
def test_a_value_that_is_not_what_it_looks_like_is_a_complaint(value: str, kind: str) -> None:
    """The line is told, and what to do."""
    documents, complaints = parsed(f"a: 1\nb: {value}\n")

    assert documents == []
    assert [str(each) for each in complaints] == [
        f"f.yaml:2: not YAML: found a value that is no {kind} (put it in quotes if it is a text)"
    ]
