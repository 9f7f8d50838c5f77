"""The budgets: how large a file, a function, a signature may grow, and what the tree never holds.

Each rule yields its violations as `file:line: what is wrong; what to do`, and a run prints all of
them at once. The layers are import-linter's business and the style is ruff's; this file has what
neither of them measures.
"""

import ast
import contextlib
import functools
import io
import re
import statistics
import subprocess
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MAX_FILE_LINES = 500
MAX_TEST_FILE_LINES = 800
MAX_MEDIAN_FILE_LINES = 150
MAX_BODY_LINES = 50
MAX_FUNCTIONS = 25
MAX_METHODS = 12
MAX_PARAMETERS = 6
MAX_BROAD_EXCEPTS = 5
MAX_TYPE_IGNORES = 5


PURE = re.compile(
    r"vk_provider/(pods|node|wire|placement|bursting)/|vk_provider/(quantities|taints)\.py$"
    r"|providers/\w+/translate\.py$"
)
PRODUCT = re.compile(r"(vk_provider|providers)/.*\.py$")
TEST_CODE = re.compile(r"tests/.*\.py$")
TEST_MODULE = re.compile(r"tests/(.*/)?(test_\w+|conftest)\.py$")

# Modules that only do I/O have no unit test: the named suite runs them against the real thing.
COVERED_BY = {
    "vk_provider/app/": "tests/e2e",
    "vk_provider/cli.py": "tests/e2e",
    "vk_provider/controllers/": "tests/integration",
    "vk_provider/doctor/": "tests/e2e",
    "vk_provider/kube/": "tests/integration",
    "vk_provider/loops/": "tests/integration",
    "vk_provider/server/": "tests/integration",
    "vk_provider/testing/": "tests/contract",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One Python file, read and parsed once."""

    path: str
    text: str
    tree: ast.Module

    @functools.cached_property
    def lines(self) -> int:
        """How many lines the file has."""
        return self.text.count("\n")

    @functools.cached_property
    def comments(self) -> dict[int, str]:
        """Each comment by its line."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}

    @functools.cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree."""
        return list(ast.walk(self.tree))

    @property
    def functions(self) -> list[Function]:
        """Every function at any depth."""
        return [n for n in self.nodes if isinstance(n, Function)]

    @property
    def classes(self) -> list[ast.ClassDef]:
        """Every class at any depth."""
        return [n for n in self.nodes if isinstance(n, ast.ClassDef)]

    def at(self, line: int, problem: str, remedy: str) -> str:
        """Word one violation."""
        return f"{self.path}:{line}: {problem}; {remedy}"


@functools.cache
def tree_files() -> dict[str, str]:
    """The text files under version control or about to be, by path."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    texts = {}
    for path in filter(None, listed.split("\0")):
        try:
            texts[path] = (ROOT / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # not text, deleted but not yet committed, or a link to a folder
    return texts


@functools.cache
def modules(pattern: re.Pattern[str] = re.compile(r".*\.py$")) -> list[Module]:
    """The Python files whose path matches."""
    found = []
    for path, text in sorted(tree_files().items()):
        if path.endswith(".py") and pattern.match(path):
            with contextlib.suppress(SyntaxError):  # ruff reports what cannot be parsed
                found.append(Module(path, text, ast.parse(text, path)))
    return found


def dotted(node: ast.AST) -> str:
    """`a.b.c` as written, or nothing where it is no plain name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def body_lines(function: Function) -> int:
    """The length of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def parameters(function: Function) -> int:
    """How many parameters a caller sees."""
    args = function.args
    named = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return len(named) - (named[:1] in (["self"], ["cls"]))


def methods(owner: ast.ClassDef) -> list[Function]:
    """The methods of a class that are not tests of a shipped suite."""
    return [n for n in owner.body if isinstance(n, Function) and not n.name.startswith("test_")]


def file_sizes() -> Iterator[str]:
    """No file is too long to be read in one sitting."""
    for module in modules():
        limit = MAX_TEST_FILE_LINES if TEST_CODE.match(module.path) else MAX_FILE_LINES
        if module.lines > limit:
            yield module.at(1, f"{module.lines} lines, limit {limit}", "split it by subject")
    sizes = [m.lines for m in modules(PRODUCT)]
    median = statistics.median(sizes) if sizes else 0
    if median > MAX_MEDIAN_FILE_LINES:
        yield f"vk_provider, providers: median file {median}, limit {MAX_MEDIAN_FILE_LINES}; split"


def function_sizes() -> Iterator[str]:
    """No function is longer than a screen."""
    for module in modules():
        for f in module.functions:
            if body_lines(f) > MAX_BODY_LINES:
                problem = f"{f.name} has {body_lines(f)} lines, limit {MAX_BODY_LINES}"
                yield module.at(f.lineno, problem, "give its steps names")


def counts() -> Iterator[str]:
    """No module, class or signature collects what belongs to several."""
    for module in modules(PRODUCT):
        functions = [f for f in module.functions if not f.name.startswith("test_")]
        if len(functions) > MAX_FUNCTIONS:
            problem = f"{len(functions)} functions, limit {MAX_FUNCTIONS}"
            yield module.at(1, problem, "split the module")
        for c in module.classes:
            if len(methods(c)) > MAX_METHODS:
                problem = f"{c.name} has {len(methods(c))} methods, limit {MAX_METHODS}"
                yield module.at(c.lineno, problem, "split the class")
        for f in module.functions:
            if parameters(f) > MAX_PARAMETERS:
                problem = f"{f.name} has {parameters(f)} parameters, limit {MAX_PARAMETERS}"
                yield module.at(f.lineno, problem, "pass one frozen dataclass")


def pure_code() -> Iterator[str]:
    """Pure code never awaits."""
    kinds = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    for module in modules(PURE):
        for node in module.nodes:
            if isinstance(node, kinds):
                yield module.at(node.lineno, "async in pure code", "move it to loops/ or client.py")


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches every fault alike."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {dotted(c) if c else "" for c in caught}
    return bool(names & {"", "Exception", "BaseException"})


def broad_excepts() -> Iterator[str]:
    """Only a named loop guard catches everything, and it says why."""
    found = [
        (m, n) for m in modules(PRODUCT) for n in m.nodes
        if isinstance(n, ast.ExceptHandler) and is_broad(n)
    ]  # fmt: skip
    for module, node in found:
        around = range(node.lineno - 1, node.body[0].lineno + 1)
        said = [module.comments.get(line, "") for line in around]
        if not any(re.sub(r"# *(noqa|type)\b[\w:\[\], -]*$", "", words) for words in said):
            yield module.at(node.lineno, "broad except without a comment", "say what it guards")
    if len(found) > MAX_BROAD_EXCEPTS:
        for module, node in found:
            problem = f"one of {len(found)} broad excepts, limit {MAX_BROAD_EXCEPTS}"
            yield module.at(node.lineno, problem, "catch the fault that is meant")


def type_ignores() -> Iterator[str]:
    """The type checker is silenced rarely, by code, with a reason."""
    marker = re.compile(r"type:\s*ignore(?P<code>\[[\w\-, ]+\])?(?P<reason>.*)")
    found = [
        (module, line, match)
        for module in modules()
        for line, comment in module.comments.items()
        if (match := marker.search(comment))
    ]
    for module, line, match in found:
        if not match["code"] or not match["reason"].strip(" #"):
            yield module.at(line, "type: ignore without code or reason", "add `[code]  # reason`")
    if len(found) > MAX_TYPE_IGNORES:
        for module, line, _ in found:
            problem = f"one of {len(found)} type: ignore, limit {MAX_TYPE_IGNORES}"
            yield module.at(line, problem, "type it, or test it with a cast")


@functools.cache
def seam_methods() -> frozenset[str]:
    """What the seam documents, so that each provider need not."""
    seam = modules(re.compile(r"vk_provider/provider\.py$"))
    return frozenset(m.name for s in seam for c in s.classes for m in methods(c))


def documented_parts(module: Module) -> Iterator[ast.ClassDef | Function]:
    """The public functions, classes and methods of a module."""
    inherited = seam_methods() if module.path != "vk_provider/provider.py" else frozenset()
    for node in module.tree.body:
        if not isinstance(node, ast.ClassDef | Function) or node.name.startswith("_"):
            continue
        yield node
        for method in methods(node) if isinstance(node, ast.ClassDef) else []:
            marks = {dotted(d).split(".")[-1] for d in method.decorator_list}
            private = method.name.startswith("_") or method.name in inherited
            if not private and not marks & {"overload", "override", "setter"}:
                yield method


def docstrings() -> Iterator[str]:
    """Every module and every public part says what it is for."""
    for module in modules(PRODUCT):
        if module.text.strip() and not ast.get_docstring(module.tree):
            yield module.at(1, "module without a docstring", "say what flows in and out")
        for node in documented_parts(module):
            if not ast.get_docstring(node):
                yield module.at(node.lineno, f"{node.name} has no docstring", "add one sentence")


def imported_names(node: ast.AST) -> list[str]:
    """The full names that an import statement brings."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def is_mock(node: ast.AST) -> bool:
    """Whether a node replaces a part instead of providing a real one."""
    name = dotted(node)
    return (
        any(re.match(r"(unittest\.)?mock\b|pytest_mock\b", n) for n in imported_names(node))
        or re.search(r"\b(Magic|Async)?Mock$|\bmonkeypatch\.(set|del)(attr|item)$", name)
        is not None
        or (isinstance(node, ast.arg) and node.arg == "mocker")
    )


def mocks() -> Iterator[str]:
    """Nothing is mocked; a test may set environment variables and nothing else."""
    for module in modules():
        for node in module.nodes:
            if is_mock(node):
                line = getattr(node, "lineno", 1)
                yield module.at(line, "mock or patch", "pass a fake that implements the protocol")


def skips_and_sleeps() -> Iterator[str]:
    """A test runs, passes, and waits for an event instead of a while."""
    skipping = re.compile(r"\b(skip|skipif|xfail|importorskip|skipTest|skipIf|skipUnless)$")
    for module in modules(TEST_CODE):
        for node in module.nodes:
            name = dotted(node)
            line = getattr(node, "lineno", 1)
            if isinstance(node, ast.Attribute) and skipping.search(name):
                yield module.at(line, name, "make the test run, or delete it")
            slept = name == "time.sleep" or "time.sleep" in imported_names(node)
            if slept and TEST_MODULE.match(module.path):
                yield module.at(line, "time.sleep", "wait for the condition, or use looptime")


def forbidden_text() -> Iterator[str]:
    """No promise for later, and nothing that holds on one machine or one network alone."""
    later = re.compile(r"\b(TO[D]O|FIX[M]E)\b")
    here = re.compile(r"(?<![\w.-])/(work|root/[.]pyenv|opt/wheels|home/[a-z]\w*|Users/\w+)/")
    registry = re.compile(
        r"pypi[.]org|pythonhosted[.]org|registry[.]npmjs|proxy[.]golang|sum[.]golang|static[.]crates"
        r"|deb[.]debian[.]org|repo1?[.]maven"
    )
    remedies = {
        later: "do it, or open an issue and delete the note",
        here: "use a relative path or a variable",
        registry: "name the package, the client knows the index",
    }
    for path, text in tree_files().items():
        for number, line in enumerate(text.splitlines(), 1):
            for pattern, remedy in remedies.items():
                if found := pattern.search(line):
                    yield f"{path}:{number}: {found[0]!r}; {remedy}"


def is_declaration(function: Function) -> bool:
    """Whether a function is a protocol's signature, with nothing to run."""
    last = function.body[-1]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant)


def unit_test_of(module: Module) -> tuple[str, re.Pattern[str]]:
    """Where the unit test of a module lives, and what else counts: a split by subject."""
    path = Path(module.path)
    folder = Path("tests/unit", *path.parts[1:-1])
    split = re.compile(rf"{re.escape(str(folder))}/test_{path.stem}(_\w+)?\.py$")
    return f"{folder}/test_{path.stem}.py", split


def missing_tests() -> Iterator[str]:
    """Every module that decides something has its own unit test file."""
    for module in modules(PRODUCT):
        if module.path.endswith(("/__init__.py", "/__main__.py")) or all(
            is_declaration(f) for f in module.functions
        ):
            continue
        if "/simulator/" in module.path or any(module.path.startswith(p) for p in COVERED_BY):
            continue
        if module.path.startswith("providers/") and not module.path.endswith("/translate.py"):
            continue  # the contract runs a provider's client and shell
        expected, accepted = unit_test_of(module)
        if not any(accepted.match(path) for path in tree_files()):
            yield module.at(1, "no unit test", f"add {expected}")


RULES: list[Callable[[], Iterator[str]]] = [
    file_sizes, function_sizes, counts, pure_code, broad_excepts, type_ignores, docstrings, mocks,
    skips_and_sleeps, forbidden_text, missing_tests,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_budget(rule: Callable[[], Iterator[str]]) -> None:
    """Each rule of this file holds in the whole tree."""
    violations = list(rule())

    if violations:
        pytest.fail("\n".join([rule.__doc__ or "", *violations]), pytrace=False)
