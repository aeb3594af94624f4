"""What a file of Python compares, and whether with a word."""

from __future__ import annotations

import ast


def sides_of(node: ast.AST) -> list[ast.AST]:
    """What is held against each other there: by a comparison, or by the cases of a match."""
    match node:
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Match(subject=subject, cases=cases):
            return [subject, *(one.pattern for one in cases)]
    return []


def has_word(node: ast.AST) -> bool:
    """Whether a string stands in it."""
    words = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    return any(isinstance(word, str) for word in words)


def bound_to_words(tree: ast.AST) -> frozenset[str]:
    """The names that stand for strings, or for what has some: constants of a file."""
    return frozenset(
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, _WORDS) and has_word(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    )


_WORDS = (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict)
"""What a constant is of that has strings."""


def held_against_words(node: ast.AST, bound: frozenset[str] = frozenset()) -> list[ast.AST]:
    """What is compared there, if any of it is, or has, a string, or a name that is ``bound`` to
    some."""
    return _with_words(sides_of(node), bound)


def asked_for_words(node: ast.AST, bound: frozenset[str]) -> list[ast.AST]:
    """What is compared without a comparison: asked how it begins or ends, or looked up among
    strings."""
    match node:
        case ast.Call(func=ast.Attribute(value=of, attr="startswith" | "endswith")):
            return [of]
        case ast.Call(func=ast.Attribute(value=among, attr="get"), args=[key, *_]):
            return _with_words([key, among], bound)
        case ast.Subscript(value=among, slice=key):
            return _with_words([key, among], bound)
    return []


def _with_words(sides: list[ast.AST], bound: frozenset[str]) -> list[ast.AST]:
    is_word = any(has_word(one) or (isinstance(one, ast.Name) and one.id in bound) for one in sides)
    return sides if is_word else []
