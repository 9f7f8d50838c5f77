"""Fields: every mistake becomes a sentence, and nothing ever raises."""

from typing import Any

import pytest

from vk_provider.faults import FieldProblem
from vk_provider.fields import Fields, MissingSecretProblem, join_path, nearest, show
from vk_provider.secrets import SecretKeyRef, SecretSource

HOW = "allowed: {file: PATH}, {env: VARIABLE} or {secretKeyRef: {name: NAME, key: KEY}}"


def fields(value: object) -> Fields:
    """A block at a path, with its own list of problems."""
    return Fields(value, "spec.config", [])


def said(block: Fields) -> list[str]:
    """The problems as a person reads them."""
    return [str(problem) for problem in block.problems]


def test_a_good_block_is_read_without_a_problem() -> None:
    """Every type has its method, and every method returns what was written."""
    block = fields(
        {
            "name": "a",
            "other": "b",
            "count": 3,
            "price": 2,
            "on": True,
            "list": ["x", "y"],
            "labels": {"a/b": "c"},
            "amounts": {"cpu": 4, "memory": "1Gi"},
            "child": {"key": "v"},
            "children": [{"n": 1}, {"n": 2}],
            "secret": {"env": "TOKEN"},
        }
    )

    assert block.text("name") == "a"
    assert block.optional_text("other") == "b"
    assert block.integer("count", 1, 0, 5) == 3
    assert block.number("price", None) == 2.0
    assert block.boolean("on", False)
    assert block.texts("list") == ("x", "y")
    assert block.mapping("labels") == {"a/b": "c"}
    assert block.mapping("amounts", numbers=True) == {"cpu": "4", "memory": "1Gi"}
    assert block.child("child").text("key") == "v"
    assert [each.integer("n", 0) for each in block.children("children")] == [1, 2]
    assert block.secret("secret") == SecretSource(env="TOKEN")
    block.done()
    assert said(block) == []


def test_what_is_absent_has_its_default() -> None:
    """An empty value counts as absent, whatever the type."""
    block = fields({"name": None})

    assert block.text("name", "d") == "d"
    assert block.optional_text("other") is None
    assert block.integer("count", None) is None
    assert block.number("price", 1.5) == 1.5
    assert block.boolean("on", True) is True
    assert block.texts("list", ("z",)) == ("z",)
    assert block.mapping("labels") == {}
    assert block.child("child").raw() == {}
    assert block.children("children") == []
    assert block.secret("secret", required=False) is None
    assert not block.has("name")
    assert said(block) == []


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        (lambda b: b.text("k", choices=("A", "B")), 'k: found "a", allowed: A, B'),
        (
            lambda b: b.text("k", pattern="[0-9]+"),
            'k: found "a", allowed: text that matches [0-9]+',
        ),
        (
            lambda b: b.text("k", pattern="[0-9]+", allowed="digits"),
            'k: found "a", allowed: digits',
        ),
        (lambda b: b.text("n"), "n: found 7, allowed: a text (put it in quotes)"),
        (lambda b: b.text("gone"), "gone: missing, must be given; allowed: a text"),
        (lambda b: b.text("gone", choices=("A",)), "gone: missing, must be given; allowed: A"),
        (lambda b: b.optional_text("n"), "n: found 7, allowed: a text (put it in quotes)"),
        (lambda b: b.integer("k", 1), 'k: found "a", allowed: a whole number'),
        (lambda b: b.integer("n", 1, 8), "n: found 7, allowed: a whole number of at least 8"),
        (lambda b: b.integer("n", 1, None, 6), "n: found 7, allowed: a whole number of at most 6"),
        (lambda b: b.integer("n", 1, 0, 6), "n: found 7, allowed: a whole number from 0 to 6"),
        (lambda b: b.integer("yes", 1), "yes: found true, allowed: a whole number"),
        (lambda b: b.number("nan", 1.0), "nan: found nan, allowed: a number"),
        (
            lambda b: b.number("waitSeconds", 1.0, 0),
            "waitSeconds: found 1e+12, allowed: a number from 0 to 1000000000",
        ),
        (
            lambda b: b.integer("far", 1, 0),
            "far: found 10000000000000000000, allowed: a whole number of at least 0",
        ),
        (
            lambda b: b.text("url", choices=("A",)),
            "url: found a URL with a password or a query (not shown), allowed: A",
        ),
        (lambda b: b.child("k"), "k: found a text, allowed: a mapping"),
        (lambda b: b.number("half", 1.0, 1), "half: found 0.5, allowed: a number of at least 1"),
        (lambda b: b.boolean("n", False), "n: found 7, allowed: true, false"),
        (lambda b: b.texts("k"), 'k: found "a", allowed: a list of texts'),
        (lambda b: b.texts("list"), "list[1]: found 2, allowed: a text (put it in quotes)"),
        (lambda b: b.texts("words", choices=("A",)), 'words[0]: found "x", allowed: A'),
        (lambda b: b.mapping("n"), "n: found 7, allowed: a mapping"),
        (lambda b: b.mapping("map"), "map[a/b]: found 7, allowed: a text (put it in quotes)"),
        (lambda b: b.child("list"), "list: found a list, allowed: a mapping"),
        (lambda b: b.children("k"), 'k: found "a", allowed: a list of mappings'),
        (lambda b: b.children("holes"), 'holes[0]: found "", allowed: a mapping'),
    ],
)
def test_a_wrong_field_says_what_was_found_and_what_is_allowed(read: Any, problem: str) -> None:
    """Each method, each way to be wrong: path, what was found, what is allowed."""
    block = fields(
        {
            "k": "a",
            "n": 7,
            "yes": True,
            "nan": float("nan"),
            "half": 0.5,
            "waitSeconds": 1e12,
            "far": 10**19,
            "url": "https://h/x?key=abc",
            "list": ["a", 2],
            "words": ["x"],
            "map": {"a/b": 7},
            "holes": [None],
        }
    )

    read(block)

    assert said(block) == [f"spec.config.{problem}"]


def test_wrong_values_read_as_their_defaults() -> None:
    """The caller goes on with something safe."""
    block = fields({"a": 1, "b": "x", "c": "x"})

    assert block.text("a", "d") == "d"
    assert block.text("a") == ""
    assert block.integer("b", 5) == 5
    assert block.boolean("c", True) is True


def test_an_unknown_key_names_the_nearest_valid_one() -> None:
    """Case and typing errors are recognized; anything else lists what is valid."""
    block = fields({"cloudtype": "x", "gpuTipes": [], "zzz": 1})
    block.text("cloudType", "")
    block.texts("gpuTypes")

    block.done()

    assert said(block) == [
        'spec.config.cloudtype: unknown key; did you mean "cloudType"?',
        'spec.config.gpuTipes: unknown key; did you mean "gpuTypes"?',
        "spec.config.zzz: unknown key; valid: cloudType, gpuTypes",
    ]


def test_a_block_that_is_no_mapping_is_one_problem() -> None:
    """The fields of what is not there are not complained about."""
    block = fields(["a"])

    assert block.text("name", "d") == "d"
    block.done()
    assert said(block) == ["spec.config: found a list, allowed: a mapping"]


@pytest.mark.parametrize("value", ["rpa_12345", 5, ["rpa_12345"]])
def test_a_secret_in_the_configuration_is_refused_without_showing_it(value: object) -> None:
    """The message says how to do it instead."""
    block = fields({"apiKey": value})

    assert block.secret("apiKey") is None

    message = "spec.config.apiKey: a secret can't stand in the configuration itself; "
    assert said(block) == [message + HOW]


def test_a_value_under_a_secret_looking_key_is_never_shown() -> None:
    """A person who mistakes the type of `token` must not find it in a log."""
    more = {"token2": {"env": "abc-1"}, "key3": {"file": ["abc"]}, "key4": {"abc1": None}}
    block = fields({"token": "abc", "password": {"x": 1}, **more})

    block.integer("token", 1)
    block.text("password")
    Fields("abc", "spec.apiKey", block.problems)

    block.secret("token2")
    block.secret("key3")
    block.secret("key4")

    assert "abc" not in str(said(block))
    assert said(block)[-1] == "spec.config.key4: unknown key (not shown); valid: env, file, " + (
        "secretKeyRef"
    )


def test_a_missing_secret_is_a_problem_of_its_own_kind() -> None:
    """Whoever needs no account can overlook it."""
    block = fields({})

    block.secret("apiKey")

    assert said(block) == [f"spec.config.apiKey: missing, must be given; {HOW}"]
    assert isinstance(block.problems[0], MissingSecretProblem)


def test_a_secret_names_a_key_of_a_secret_object() -> None:
    """The reference is spelled as in a pod."""
    block = fields({"k": {"secretKeyRef": {"namespace": "n", "name": "s", "key": "x"}}})

    assert block.secret("k") == SecretSource(secret_key_ref=SecretKeyRef("s", "x", "n"))
    assert said(block) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({}, f": exactly one source must be given; {HOW}"),
        ({"file": "/a", "env": "B"}, f": exactly one source must be given; {HOW}"),
        ({"fil": "/a"}, '.fil: unknown key; did you mean "file"?'),
        ({"env": "a b"}, """.env: found "a b", allowed: a variable's name"""),
        (
            {"secretKeyRef": {"name": "s"}},
            ".secretKeyRef.key: missing, must be given; allowed: a text",
        ),
    ],
)
def test_a_wrong_source_of_a_secret_is_explained(source: object, problem: str) -> None:
    """Two sources, none, or one that is misspelled."""
    block = fields({"s": source})

    assert block.secret("s") is None
    assert said(block) == [f"spec.config.s{problem}"]


def test_paths_put_odd_keys_in_brackets() -> None:
    """So a resource name can be told from a path."""
    assert join_path("spec.capacity", "nvidia.com/gpu") == "spec.capacity[nvidia.com/gpu]"
    assert join_path("spec", "backends[0]") == "spec.backends[0]"
    assert join_path("", "spec") == "spec"


def test_shown_values_are_short() -> None:
    """A pasted file does not fill the screen."""
    assert show("x" * 100) == f'"{"x" * 60}…"'
    assert show(None) == "nothing"
    assert show(1.0) == "1"
    assert show({}) == "a mapping"


def test_nearest_finds_nothing_for_a_stranger() -> None:
    """No guess is better than a wild one."""
    assert nearest("zebra", ("cloudType",)) is None


def test_problems_carry_their_path() -> None:
    """Files and lines are found by it."""
    block = fields({"n": 1})

    block.refuse("n", "no")

    assert block.problems == [FieldProblem("spec.config.n", "no")]


@pytest.mark.parametrize("endless", [10**400, -(10**400), 16**5000], ids=["long", "below", "hex"])
def test_a_number_without_end_is_a_problem(endless: int) -> None:
    """YAML has whole numbers that no float can hold, and no person wants to read."""
    block = fields({"n": endless})

    assert block.number("n", 1.0, 0) == 1.0
    assert said(block) == [
        "spec.config.n: found a number without end, allowed: a number of at least 0"
    ]


def test_shown_values_stay_on_their_line() -> None:
    """A problem is one line, and none speaks to the terminal."""
    assert show("a\nb\x1b[2J") == '"a\\nb\\x1b[2J"'
