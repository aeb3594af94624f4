"""What is said to people decides nothing: no sentence is compared, searched or counted.

Whatever a program of darc's goes by is a value; its words are made of that, in one place.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.contract.names import name_of, names_in, walk
from tests.contract.tree import INSTALLED, module_name, trees

TOLD = frozenset("doubt doubts note notes remark remarks reasons warning warnings why".split())
"""What sentences are called, as a name and as what a value has,"""

SINGLE = frozenset("doubt note remark warning why".split())
"""Of these the ones of which a length is that of a sentence."""

TEXTS = TOLD | {"message", "text"}
"""and as what a value has alone: a name of those is what was typed, or read."""

ALIKE = frozenset(("reason",))
"""What members of enums are called, too: sentences where they are asked as strings are, or compared
with one."""

ASKS = frozenset("count endswith find index partition rindex startswith".split())
"""What one asks a string for, to go by that."""

SAME = frozenset("casefold lower splitlines strip upper".split())
"""What makes a text of a text that says the same."""

MATCHES = frozenset("findall finditer fullmatch match search".split())
"""What one asks an expression, of the last thing that it is given."""

LEAST_SPACES = 2
"""In a constant that is a sentence: three words."""

ALLOWED = {
    "darc/saved/sentences.py": "what older files say by sentences alone becomes values there",
    "kgdb/vm/machine.py: said.startswith(guest.ENDED": "a guest's shell has lines alone to tell by",
    "darc/model/ftree.py: note not in told": "a note is not told twice",
    "darc_gdb/symbols.py: re.search('No": "gdb's words: one error is all that it cannot find",
    "darc_gdb/symbols.py: re.search('not": "the same",
    "darc_gdb/target.py: 'Unable to read siginfo' in": "gdb's words: it has no value for that",
}
"""Files, and places in them, with the reason why these may."""


class Sentences(NamedTuple):
    """The full names of constants that are sentences, and of enums whose values are."""

    constants: frozenset[str]
    enums: frozenset[str]


def is_sentence(node: ast.AST) -> bool:
    """Whether an expression has a constant in it that is one."""
    texts = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    return any(
        isinstance(text, str)
        and text.strip().count(" ") >= LEAST_SPACES
        and any(map(str.isalpha, text))
        for text in texts
    )


def given(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """The names that stand for a sentence, with it."""
    for node in body:
        if isinstance(node, ast.Assign) and is_text(node.value) and is_sentence(node.value):
            yield from ((one.id, node.value) for one in node.targets if isinstance(one, ast.Name))


def is_text(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, right=right):
            return is_text(left) or is_text(right)
    return False


def sentences_in(trees: dict[Path, ast.Module]) -> Sentences:
    constants, enums = set(), set()
    for file, tree in trees.items():
        own = module_name(file)
        constants |= {f"{own}.{name}" for name, _ in given(tree.body)}
        for one in tree.body:
            if isinstance(one, ast.ClassDef) and any(given(one.body)):
                is_enum = any(ast.unparse(base).endswith("Enum") for base in one.bases)
                enums |= {f"{own}.{one.name}"} if is_enum else set()
    return Sentences(frozenset(constants), frozenset(enums))


def errors_in(tree: ast.Module) -> Iterator[str]:
    """The names that a file has for errors."""
    for node in walk(tree):
        match node:
            case ast.ExceptHandler(name=str(name)):
                yield name
            case ast.arg(arg=name, annotation=ast.expr() as kind):
                if ast.unparse(kind).endswith(("Error", "Exception")):
                    yield name


class Reader:
    """What the expressions of one file are, where all of them have the ``known`` sentences."""

    def __init__(self, file: Path, tree: ast.Module, known: Sentences) -> None:
        self._own = module_name(file)
        self._names = names_in(tree)
        self._known = known
        self._errors = frozenset(errors_in(tree))
        self._each = frozenset[str]()

    def _is(self, node: ast.expr, names: frozenset[str]) -> bool:
        name = name_of(node, self._names)
        return name in names or f"{self._own}.{name}" in names

    def within(self, names: frozenset[str]) -> Reader:
        """The same where these names are sentences, too."""
        inner = copy.copy(self)
        inner._each = self._each | names
        return inner

    def told(self, *parts: ast.expr) -> bool:
        """Whether one of these is what people are told."""
        return any(map(self._is_told, parts))

    def _is_told(self, node: ast.expr) -> bool:
        match node:
            case ast.BoolOp(values=parts):  # note or ""
                return self.told(*parts)
            case ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.List(elts=parts):
                return self.told(*parts)
            case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
                return name in self._errors
            case ast.Call(func=ast.Attribute(value=of, attr=name)) if name in SAME:
                return self.told(of)
            case ast.Attribute(value=ast.Name(id=name), attr="args" | "strerror"):
                return name in self._errors
            case ast.Subscript(value=ast.Attribute(attr="args") as words):
                return self.told(words)
            case ast.JoinedStr(values=[ast.FormattedValue(value=ast.Name(id=name))]):
                return name in self._errors
            case ast.Constant(value=str()) | ast.JoinedStr():
                return is_sentence(node)
            case ast.Attribute(value=ast.Attribute(value=enum), attr="value"):
                return self._is(enum, self._known.enums)
            case ast.Name(id=name) if name in TOLD or name in self._each:
                return True
            case ast.Subscript(value=of, slice=ast.Slice()):  # its beginning, or its end
                return self.told(of)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
                return name in SINGLE
            case ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(attr=name)]):
                return name in SINGLE
            case ast.Attribute(attr=name) if name in TEXTS:
                return True
            case ast.Name() | ast.Attribute():
                return self._is(node, self._known.constants)
        return False


def is_asked(*parts: ast.expr) -> bool:
    """Whether what may be called as an enum's member is held against a string."""
    names = [one.attr if isinstance(one, ast.Attribute) else ast.unparse(one) for one in parts]
    return bool(ALIKE.intersection(names)) and any(map(is_text, parts))


def decides(node: ast.AST, told: Callable[..., bool]) -> bool:
    """Whether something is gone by what people are ``told``."""
    match node:
        case ast.Compare(left=left, ops=how, comparators=others):
            is_none = all(isinstance(one, ast.Is | ast.IsNot) for one in how)
            return not is_none and (told(left, *others) or is_asked(left, *others))
        case ast.Call(func=ast.Attribute(value=of, attr=name), args=args) if name in ASKS:
            return told(of, *args) or is_asked(of, *args)
        case ast.Call(func=ast.Attribute(attr=name), args=args) if name in MATCHES:
            return told(*args[-1:]) or told(*args[1:2])
        case ast.Call(args=[ast.GeneratorExp(elt=key)]):
            return ast.unparse(node.func).endswith("Counter") and told(key)
        case ast.Subscript(slice=key):
            return told(key)
        case ast.DictComp(key=key):
            return told(key)
        case ast.Match(subject=subject):
            return told(subject)
    return False


def decisions(file: Path, tree: ast.Module, known: Sentences) -> Iterator[str]:
    """Where a file goes by sentences."""
    reader = Reader(file, tree, known)
    for node in ast.walk(tree):
        if decides(node, reader.told):
            yield _decision(file, node)
        if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            each = [one.target for one in node.generators if is_among_sentences(one.iter)]
            inner = reader.within(frozenset(one.id for one in each if isinstance(one, ast.Name)))
            decided = (one for one in ast.walk(node) if each and decides(one, inner.told))
            yield from (_decision(file, one) for one in decided if not decides(one, reader.told))


def _decision(file: Path, node: ast.AST) -> str:
    text = ast.unparse(node.subject if isinstance(node, ast.Match) else node)
    return f"{file}: {text}"


def is_among_sentences(node: ast.expr) -> bool:
    """Whether each of what is gone through is one."""
    name = node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)
    return name in TOLD - SINGLE


@functools.cache
def known_sentences() -> Sentences:
    return sentences_in(trees(INSTALLED))


def test_nothing_is_decided_by_sentences() -> None:
    known = known_sentences()
    found = [one for file, tree in trees(INSTALLED).items() for one in decisions(file, tree, known)]
    wrong = [one for one in found if not any(one.startswith(place) for place in ALLOWED)]
    assert not wrong, "\n".join(wrong)
    unused = [place for place in ALLOWED if not any(one.startswith(place) for one in found)]
    assert not unused, "nothing there does any more"


SENTENCES = """
TIME_IS_UP = 'the time is up'
NO_TIME = f'{x} was not made'
class Unclear(Enum):
    WHOSE = 'the time may be theirs'
"""


@pytest.mark.parametrize(
    "text",
    [
        "UNTOLD in (path.ending.note or '')",
        "if path.ending.note == other: pass",
        "one.startswith(TIME_IS_UP)",
        "why == memberpads.NO_TIME",
        "why in (TIME_IS_UP, other)",
        "Counter(why for _, why in known.left_out)",
        "collections.Counter(one.text for one in reasons)",
        "reasons[why]",
        "any('blocked' in one for one in notes)",
        "[one for one in snapshot.warnings if one.startswith('lost')]",
        "len(note) > 20",
        "note[:4] == 'lost'",
        "'targets of the call' in told",
        "snapshot.notes.count(one)",
        "re.search('no pad', error.message)",
        "Unclear.WHOSE.value in told",
        "{one.text: one for one in reasons}",
        "match why:\n    case 'late': pass",
        "try: go()\nexcept OSError as error: gone = 'pid' in str(error)",
        "try: go()\nexcept OSError as caught: gone = 'pid' in str(caught).lower()",
        "try: go()\nexcept OSError as error: gone = f'{error}' == 'gone'",
        "try: go()\nexcept OSError as error: gone = error.args[0].startswith('gone')",
        "try: go()\nexcept OSError as error: gone = error.strerror == 'gone'",
        "def is_gone(error: DarcError) -> bool:\n    return str(error).endswith('gone')",
        "reason.startswith('no pad')",
        "'no pad' in one.reason",
    ],
)
def test_who_goes_by_a_sentence_is_noticed(text: str) -> None:
    known = sentences_in({Path("darc/y.py"): ast.parse(SENTENCES)})
    imports = "from darc import y as memberpads\nfrom darc.y import TIME_IS_UP, Unclear\n"
    assert list(decisions(Path("darc/x.py"), ast.parse(imports + text), known))


@pytest.mark.parametrize(
    "text",
    [
        "path.ending.note is None",
        "Unclear.WHOSE in ending.unclear",
        "text == 'none'",
        "Counter(why.kind for _, why in left_out)",
        "notes.append(why)",
        "dict.fromkeys(notes)",
        "len(notes) > 3",
        "[style.note(one) for one in notes]",
        "notes[:3]",
        "path.startswith('/proc')",
        "off.reason in held",
        "off.reason == OffReason.READY",
        "try: go()\nexcept OSError as error: gone = error.errno in (2, 3)",
        "str(other) == 'pad'",
    ],
)
def test_others_are_not(text: str) -> None:
    assert not list(decisions(Path("darc/x.py"), ast.parse(text), known_sentences()))
