"""Ways to break a function, as edits of its syntax tree: its layout, its comments and the rest of
the module may change as they like.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from effort import SEARCHING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class EditError(ValueError):
    """An edit that does not fit the code, or does not change it."""


@dataclass(frozen=True)
class Edit:
    """In `scope` (the name of a function or constant, "Class.method" of a method), `old`, which is
    there exactly once, becomes `new`; None takes it away.

    `old` is a statement, an expression, or an argument of a call (`key=value`); `...` in it stands
    for any expression, and `name(...)` for a call with any arguments.
    """

    scope: str
    old: str
    new: str | None


def change(scope: str, old: str, new: str) -> Edit:
    return Edit(scope, old, new)


def without(scope: str, old: str) -> Edit:
    """A statement becomes `pass`; an operand, element, argument or context leaves the others."""
    return Edit(scope, old, None)


def never(scope: str, condition: str) -> Edit:
    return Edit(scope, condition, "False")


def always(scope: str, condition: str) -> Edit:
    return Edit(scope, condition, "True")


@dataclass(frozen=True)
class Mutant:
    """`module` is its path below the package, without suffix."""

    name: str
    module: str
    edits: tuple[Edit, ...]

    def applied(self, source: str) -> str:
        """Raises EditError."""
        tree = ast.parse(source)
        for edit in self.edits:
            try:
                _apply(tree, edit)
            except EditError as error:
                raise EditError(f"{self.name}: {self.module}: {edit.scope}: {error}") from None
        return ast.unparse(tree)


def mutants(module: str, edits: Mapping[str, Edit | tuple[Edit, ...]]) -> tuple[Mutant, ...]:
    return tuple(
        Mutant(name, module, edit if isinstance(edit, tuple) else (edit,))
        for name, edit in edits.items()
    )


def sample(all_mutants: Sequence[Mutant]) -> tuple[Mutant, ...]:
    """The first of each module; all of them in a long search (`make search`)."""
    if SEARCHING:
        return tuple(all_mutants)
    return tuple({mutant.module: mutant for mutant in reversed(all_mutants)}.values())


def _apply(tree: ast.Module, edit: Edit) -> None:
    scope = _scope(tree, edit.scope)
    before = ast.dump(scope)
    replacing = _Replacing(edit)
    replacing.visit(scope)
    if replacing.found != 1:
        raise EditError(f"{edit.old!r} is there {replacing.found} times")
    if ast.dump(scope) == before:
        raise EditError(f"{edit.old!r} becomes what it was")


def _scope(tree: ast.Module, name: str) -> ast.stmt:
    outer, _, own = name.rpartition(".")
    statements: list[ast.stmt] = getattr(_scope(tree, outer), "body", []) if outer else tree.body
    found = [statement for statement in statements if own in _names(statement)]
    if len(found) != 1:
        raise EditError(f"{own!r} is defined {len(found)} times")
    return found[0]


def _names(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {statement.name}
        case ast.Assign():
            return set(map(ast.unparse, statement.targets))
        case ast.AnnAssign():
            return {ast.unparse(statement.target)}
        case _:
            return set()


class _Replacing(ast.NodeTransformer):
    def __init__(self, edit: Edit) -> None:
        self.found = 0
        self._old = ast.parse(edit.old).body
        self._new = None if edit.new is None else ast.parse(edit.new).body

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST] | None:
        """Not what is inside of a match: a call that is a whole statement counts once."""
        if not _matches(_as(self._old, node), [node]):
            return _mended(self.generic_visit(node))
        self.found += 1
        if self._new is None:
            return ast.Pass() if isinstance(node, ast.stmt) else None
        new = _as(self._new, node)
        if not new:
            raise EditError(f"a {type(node).__name__} cannot become that")
        return new if len(new) > 1 else new[0]


def _as(source: Sequence[ast.stmt], node: ast.AST) -> list[ast.AST]:
    """`source` as the kind of node that `node` is; nothing where it cannot be one."""
    match node, source:
        case ast.stmt(), _:
            return [*source]
        case ast.expr(), [ast.Expr(value=expression)]:
            return [expression]
        case ast.keyword(), [ast.Assign(targets=[ast.Name(id=name)], value=argument)]:
            return [ast.keyword(name, argument)]
        case _:
            return []


def _matches(pattern: object, found: object) -> bool:
    match pattern, found:
        case ast.Constant(value=value), _ if value is ...:
            return isinstance(found, ast.expr)
        case ast.Call(args=[ast.Constant(value=value)]), ast.Call() if value is ...:
            return _matches(pattern.func, found.func)
        case ast.AST(), ast.AST():
            return type(pattern) is type(found) and _matches(_fields(pattern), _fields(found))
        case list(), list():
            return len(pattern) == len(found) and all(map(_matches, pattern, found))
        case _:
            return type(pattern) is type(found) and pattern == found


def _fields(node: ast.AST) -> list[object]:
    return [value for _, value in ast.iter_fields(node)]


def _mended(node: ast.AST) -> ast.AST | None:
    """Without what has lost one of its parts, or all but one."""
    match node:
        case ast.BoolOp(values=[only]):
            return only
        case ast.BinOp() if not hasattr(node, "right"):
            return node.left
        case ast.BinOp() if not hasattr(node, "left"):
            return node.right
        case ast.withitem() if not hasattr(node, "context_expr"):
            return None
        case _:
            return node
