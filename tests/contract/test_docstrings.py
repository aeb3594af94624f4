"""Each public method says what it means, in its class or in one that this one derives from.

Modules, classes and functions are looked at by ruff, which knows nothing of bases. What a public
function raises by itself, its docstring names.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tests.contract.names import walk
from tests.contract.tree import INSTALLED, trees

Trees = Mapping[str, ast.Module]
"""Files by their names."""


class Class(NamedTuple):
    """One class; ``bases`` are the names of those that it derives from."""

    place: str
    node: ast.ClassDef
    bases: tuple[str, ...]


Known = dict[str, list[Class]]
"""Classes by their names."""


def known_classes(files: Trees) -> Known:
    known: Known = {}
    for place, tree in files.items():
        for node in walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = (b.value if isinstance(b, ast.Subscript) else b for b in node.bases)
                names = tuple(ast.unparse(base).rpartition(".")[2] for base in bases)
                known.setdefault(node.name, []).append(Class(place, node, names))
    return known


def methods(one: Class) -> Iterator[ast.FunctionDef]:
    return (node for node in one.node.body if isinstance(node, ast.FunctionDef))


def is_told(name: str, method: str, known: Known) -> bool:
    """Whether a class of this name, or a base, has such a method, or field, that is told of."""
    return any(
        any(m.name == method and ast.get_docstring(m) for m in methods(one))
        or any(
            isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == method
            for node in one.node.body
        )
        or any(is_told(base, method, known) for base in one.bases if base != name)
        for one in known.get(name, ())
    )


def is_property(method: ast.FunctionDef) -> bool:
    return any(ast.unparse(by).endswith("property") for by in method.decorator_list)


def untold(known: Known) -> list[str]:
    """Public methods of public classes. What a protocol asks of others is told of by one of these,
    or by its type."""
    classes = [one for alike in known.values() for one in alike]
    told = {m.name for one in classes for m in methods(one) if ast.get_docstring(m)}
    return [
        f"{one.place}:{method.lineno} {one.node.name}.{method.name}"
        for one in classes
        for method in methods(one)
        if not one.node.name.startswith("_")
        and not method.name.startswith("_")
        and not any(ast.unparse(by).endswith(".setter") for by in method.decorator_list)
        and not ("Protocol" in one.bases and (method.name in told or is_property(method)))
        and not is_told(one.node.name, method.name, known)
    ]


def all_files() -> Trees:
    return {str(file): tree for file, tree in trees(INSTALLED).items()}


def made(**texts: str) -> Trees:
    return {f"{name}.py": ast.parse(text) for name, text in texts.items()}


def test_public_methods_are_told_of() -> None:
    wrong = untold(known_classes(all_files()))
    assert not wrong, "no docstring:\n" + "\n".join(wrong)


_BASE = """
class Base(Protocol[T]):
    def told(self) -> None:
        "What it is."
"""


def test_what_is_untold() -> None:
    def found(text: str) -> list[str]:
        return untold(known_classes(made(a=_BASE, b=text)))

    assert found("class One(Base[int]):\n  def told(self): ...") == []
    assert found("class One(Protocol):\n  def told(self): ...") == []
    assert found("class One:\n  def _own(self): ...") == []
    assert found("class One:\n  def told(self): ...") == ["b.py:2 One.told"]
    assert found("class One(Base[int]):\n  def more(self): ...") == ["b.py:2 One.more"]


RAISED = ("DarcError", "NotNowError", "OSError", "ValueError")
"""What leaves a function for its caller, with what derives from these: ``darc/model/errors.py``."""


class Errors(NamedTuple):
    """The classes of errors that there are."""

    known: Known
    makers: dict[str, str]
    """Functions that return an error, and its class: what ``raise no_walk()`` raises."""

    def above(self, name: str) -> list[str]:
        """The class and what it derives from, but for what says nothing of it."""
        builtin = getattr(builtins, name, None)
        if isinstance(builtin, type):
            return [one.__name__ for one in builtin.__mro__[:-1]]
        bases = (base for one in self.known.get(name, ()) for base in one.bases if base != name)
        return [name, *(above for base in bases for above in self.above(base))]

    def raised(self, node: ast.Raise) -> str:
        """The class of what a line raises, where it is one that callers are told of; or nothing."""
        what = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = ast.unparse(what).rpartition(".")[2] if what is not None else ""
        name = self.makers.get(name, name) if isinstance(node.exc, ast.Call) else name
        return name if set(RAISED) & set(self.above(name)) else ""


def errors_in(files: Trees) -> Errors:
    returned = {
        node.name: ast.unparse(node.returns).strip("'").rpartition(".")[2]
        for tree in files.values()
        for node in walk(tree)
        if isinstance(node, ast.FunctionDef) and node.returns is not None
    }
    makers = {name: of for name, of in returned.items() if of.endswith("Error")}
    return Errors(known_classes(files), makers)


def raises(nodes: Iterable[ast.AST], errors: Errors, caught: frozenset[str]) -> Iterator[str]:
    """The errors that leave these lines; not those of functions in them, which are called later."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Raise):
            name = errors.raised(node)
            if name and not caught & set(errors.above(name)):
                yield name
        if isinstance(node, ast.Try):
            types = filter(None, (one.type for one in node.handlers))
            names = (one.elts if isinstance(one, ast.Tuple) else [one] for one in types)
            own = {ast.unparse(one).rpartition(".")[2] for some in names for one in some}
            yield from raises(node.body, errors, caught | own)
            yield from raises([*node.handlers, *node.orelse, *node.finalbody], errors, caught)
        else:
            yield from raises(ast.iter_child_nodes(node), errors, caught)


def docstrings(name: str, method: str, known: Known) -> Iterator[str]:
    """What is said of a method by the class of this name, and by those that it derives from."""
    for one in known.get(name, ()):
        yield from (ast.get_docstring(m) or "" for m in methods(one) if m.name == method)
        for base in one.bases:
            if base != name:
                yield from docstrings(base, method, known)


def public(files: Trees, known: Known) -> Iterator[tuple[str, ast.FunctionDef, str]]:
    """Public functions, and methods of public classes: where each is, and what is said of it."""
    for place, tree in files.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield f"{place}:{node.lineno} {node.name}", node, ast.get_docstring(node) or ""
    for one in (one for alike in known.values() for one in alike):
        for method in methods(one):
            if not one.node.name.startswith("_") and not method.name.startswith("_"):
                said = " ".join(docstrings(one.node.name, method.name, known))
                yield f"{one.place}:{method.lineno} {one.node.name}.{method.name}", method, said


def unsaid(files: Trees) -> list[str]:
    """Public functions whose docstrings do not name an error that they raise, or one above it."""
    errors = errors_in(files)
    return [
        f"{place} raises {name}"
        for place, function, said in public(files, errors.known)
        for name in sorted(set(raises(function.body, errors, frozenset())))
        if not re.search("[Rr]aises", said)
        or not set(errors.above(name)) & set(re.findall(r"\w+Error", said))
    ]


def test_what_is_raised_is_told_of() -> None:
    wrong = unsaid(all_files())
    assert not wrong, "the docstring does not say so ('Raises'):\n" + "\n".join(wrong)


_ERRORS = """
class DarcError(Exception): ...
class UsageError(DarcError): ...
def no_word() -> UsageError: ...
class Base:
    def told(self):
        "Raises :class:`UsageError`."
"""


def test_what_of_errors_is_unsaid() -> None:
    def found(text: str) -> list[str]:
        return unsaid(made(a=_ERRORS, b=text))

    assert found("def f():\n  raise errors.UsageError('no')") == ["b.py:1 f raises UsageError"]
    assert found("def f():\n  raise no_word()") == ["b.py:1 f raises UsageError"]
    assert found("def f():\n  'Raises OSError.'\n  raise UsageError") == [
        "b.py:1 f raises UsageError"
    ]
    assert found("def f():\n  'Raises OSError.'\n  raise FileNotFoundError") == []
    assert found("def f():\n  'Raises DarcError.'\n  raise UsageError") == []
    assert found("def _f():\n  raise UsageError") == []
    assert found("class B(Base):\n  def told(self):\n    raise UsageError") == []
    assert found("class B(Base):\n  def own(self):\n    raise UsageError") == [
        "b.py:2 B.own raises UsageError"
    ]
    assert found("def f():\n  raise KeyError") == []


def test_errors_that_stay_within() -> None:
    def found(lines: str) -> list[str]:
        indented = "".join(f"  {line}\n" for line in lines.splitlines())
        return unsaid(made(a=_ERRORS, b=f"def f():\n{indented}"))

    assert found("def g():\n  raise UsageError\nreturn g") == []
    assert found("try:\n  raise UsageError\nexcept DarcError: ...") == []
    assert found("try:\n  raise UsageError\nexcept (KeyError, UsageError): ...") == []
    assert found("try:\n  raise DarcError\nexcept UsageError: ...") == ["b.py:1 f raises DarcError"]
    assert found("try:\n  g()\nexcept UsageError:\n  raise DarcError") == [
        "b.py:1 f raises DarcError"
    ]
