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


def held_against_words(node: ast.AST) -> list[ast.AST]:
    """What is compared there, if any of it is, or has, a string."""
    sides = sides_of(node)
    return sides if any(map(has_word, sides)) else []
