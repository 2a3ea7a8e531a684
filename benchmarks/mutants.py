"""Mutants: one operator, comparison, constant, condition or statement of a function changed."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

BINARY = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
BOUNDS = ("HUGE", "HUGEST")  # whether exactly this size counts as overflow makes no difference
PRIVATE = re.compile("_[A-Z][A-Z_]*")  # a limit of a module: nobody is told on which side it lies
HINTS = ("rolled",)  # compiles to nothing
ABSTRACT = ("NotImplementedError",)  # of a base class: never reached
IDLE = ("strict",)  # arguments that only check what holds anyway
IDLE += ("no_wrap", "pad_edge", "markup", "highlight")  # and those that only lay out text
REVERSED = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt}


def named(node: Any, names: tuple[str, ...]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def limit(node: Any) -> bool:
    return named(node, BOUNDS) or (isinstance(node, ast.Name) and bool(PRIVATE.fullmatch(node.id)))


def shift(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift)


def negative(node: ast.AST) -> bool:
    """Of a shape: any negative number stands for what is left."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


class Mutator(ast.NodeTransformer):
    """Counts the places that can be changed, or changes the one numbered `chosen`."""

    def __init__(self, chosen: int = -1) -> None:
        self.chosen, self.count = chosen, 0
        self.places: list[tuple[int, str]] = []

    def place(self, node: Any, what: str) -> bool:
        hit = self.count == self.chosen
        self.count += 1
        self.places.append((node.lineno, what))
        return hit

    def inside(self, node: Any) -> Any:
        return super().generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.args.defaults = [self.visit(one) for one in node.args.defaults]
        node.args.kw_defaults = [one and self.visit(one) for one in node.args.kw_defaults]
        node.body = [self.visit(one) for one in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.value = node.value and self.visit(node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return node  # the text of a message is not part of the algorithm

    def visit_Raise(self, node: ast.Raise) -> Any:
        if named(getattr(node.exc, "func", node.exc), ABSTRACT):
            return node
        return ast.copy_location(ast.Pass(), node) if self.place(node, "raise removed") else node

    def visit_If(self, node: ast.If) -> Any:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node
        if self.place(node, "condition negated"):
            node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
            return node
        return self.inside(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Constant) or named(getattr(node.value, "func", None), HINTS):
            return node
        if isinstance(node.value, ast.Call) and self.place(node, "statement removed"):
            return ast.copy_location(ast.Pass(), node)
        return self.inside(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        names = [one.id for one in node.targets if isinstance(one, ast.Name)]
        if "__all__" in names:
            return node
        if not names and self.place(node, "statement removed"):
            return ast.copy_location(ast.Pass(), node)
        return self.inside(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if self.place(node, "statement removed"):
            return ast.copy_location(ast.Pass(), node)
        other = BINARY.get(type(node.op))
        if other and self.place(node, f"{type(node.op).__name__}= to {other.__name__}="):
            node.op = other()
            return node
        return self.inside(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if shift(node) or shift(node.left):
            return node  # how many rows or bytes are handled at a time: no answer depends on it
        other = BINARY.get(type(node.op))
        if other and self.place(node, f"{type(node.op).__name__} to {other.__name__}"):
            node.op = other()
            return node
        return self.inside(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if self.place(node, f"{type(node.op).__name__} removed"):
            return node.operand
        return self.inside(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        if self.place(node, "and for or"):
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            return node
        return self.inside(node)

    def visit_keyword(self, node: ast.keyword) -> Any:
        return node if node.arg in IDLE else self.inside(node)

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "default_rng":
            return node  # where random starts begin: any seed is as good
        if isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
            node.func = self.visit(node.func)
            node.args = [one if negative(one) else self.visit(one) for one in node.args]
            node.keywords = [self.visit(one) for one in node.keywords]
            return node
        return self.inside(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        sides = (node.left, *node.comparators)
        if any(isinstance(one, ast.Name) and one.id.endswith("_BYTES") for one in sides):
            return node  # how much memory is used before something else is done
        bounded = any(limit(one) for one in sides)
        for table in (REVERSED,) if bounded else (COMPARED, REVERSED):
            other = table.get(type(node.ops[0]))
            if other and self.place(node, f"{type(node.ops[0]).__name__} to {other.__name__}"):
                node.ops[0] = other()
                return node
        return self.inside(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bool):
            new: Any = not node.value
        elif isinstance(node.value, (int, float)):
            new = node.value + 1
        else:
            return node
        if self.place(node, f"{node.value!r} to {new!r}"):
            return ast.copy_location(ast.Constant(new), node)
        return node

    def visit_Break(self, node: ast.Break) -> Any:
        return ast.copy_location(ast.Continue(), node) if self.place(node, "break") else node

    def visit_Continue(self, node: ast.Continue) -> Any:
        return ast.copy_location(ast.Pass(), node) if self.place(node, "continue") else node


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


class Place(NamedTuple):
    """A line that can be changed, how it is changed, and the outermost function around it."""

    line: int
    what: str
    function: str = ""
    first: int = 0
    last: int = 0


def places(path: Path) -> list[Place]:
    """All changes of a file, in the order in which `Mutator` counts them."""
    mutator, tree = Mutator(), parsed(path)
    mutator.visit(tree)
    spans = [(name, began(node), node) for name, node in functions(tree)]
    found = []
    for line, what in mutator.places:
        around = [
            (name, first, end(node))
            for name, first, node in spans
            if node.body[0].lineno <= line <= end(node)
        ]
        found.append(Place(line, what, *(around[0] if around else ())))
    return found


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The outermost functions of the module and of its classes, by name."""
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        around = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        yield from ((around + one.name, one) for one in inside if isinstance(one, ast.FunctionDef))


@cache
def forms(path: Path) -> frozenset[str]:
    """Functions that run only in Python: those with a compiled form beside them, and their helpers."""
    own = {name: node for name, node in functions(parsed(path)) if "." not in name}
    found = {
        one.args[0].id
        for node in own.values()
        for one in node.decorator_list
        if isinstance(one, ast.Call) and named(one.func, ("overload",)) and named(one.args[0], (*own,))
    }  # fmt: skip
    uses = {
        name: {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        for name, node in own.items()
    }
    for helper in (name for name in own if name.startswith("_")):
        users = {name for name in own if helper in uses[name]}
        if users and users <= found:
            found.add(helper)
    return frozenset(found)


@cache
def loops(path: Path) -> frozenset[str]:
    """Functions that are compiled: a change of them is seen only where compilation is off."""
    return frozenset(
        name
        for name, node in functions(parsed(path))
        for one in node.decorator_list
        if named(getattr(one, "func", one), ("njit", "jitable"))
    )


def end(node: ast.AST) -> int:
    return int(getattr(node, "end_lineno", 0) or 0)


def changed(path: Path, file: str, chosen: int, at: Place, lines: dict[int, int]) -> CodeType:
    """The code of the function around a place with one change; it tells as much as without it."""
    tree = Mutator(chosen).visit(parsed(path))
    return compiled(Marker(file, told(path, lines)).visit(tree), path, at.first)


def compiled(tree: ast.Module, path: Path, first: int) -> CodeType:
    """The code of the function that starts in line `first`."""
    todo = [compile(ast.fix_missing_locations(tree), str(path), "exec")]
    while todo:
        code = todo.pop()
        if code.co_firstlineno == first and code.co_name != "<module>":
            return code
        todo += [one for one in code.co_consts if isinstance(one, CodeType)]
    raise LookupError(f"{path}: no function in line {first}")


class Marker(ast.NodeTransformer):
    """Puts a call of `reached(file, line)` before the innermost statement around each line."""

    def __init__(self, file: str, lines: set[int]) -> None:
        self.file, self.lines = file, lines

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            inside = getattr(node, name, None)
            if isinstance(inside, list):
                setattr(node, name, [new for one in inside for new in self.marked(one)])
        return node

    def marked(self, statement: Any) -> Iterator[Any]:
        for line in sorted(self.lines):
            if statement.lineno <= line <= end(statement):
                self.lines.discard(line)
                call = ast.parse(f"reached({self.file!r}, {line})").body[0]
                yield ast.copy_location(call, statement)
        yield statement


def mark(path: Path, file: str, lines: dict[int, int]) -> None:
    """Let the loaded functions tell `reached` when they are entered and when they get to a line.

    `lines` has the first line of the function around each.
    """
    for first in set(lines.values()):
        put(compiled(Marker(file, told(path, lines)).visit(parsed(path)), path, first))


def told(path: Path, lines: dict[int, int]) -> set[int]:
    """These lines, and the first of each function around one."""
    around = [one for _, one in functions(parsed(path)) if began(one) in lines.values()]
    return {*lines, *(one.body[0].lineno for one in around)}


def began(node: ast.FunctionDef) -> int:
    """The line of a function's first decorator, or its own."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from within(one)


def put(code: CodeType) -> None:
    """Make the loaded function at that place, and those that it created, run this code from now on."""
    new = {(one.co_firstlineno, one.co_qualname): one for one in within(code)}
    hits = 0
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename == code.co_filename:
            found = new.get((one.__code__.co_firstlineno, one.__code__.co_qualname))
            if found is not None and found.co_freevars == one.__code__.co_freevars:
                one.__code__ = found
                hits += 1
    if not hits:
        raise LookupError(f"{code.co_filename}:{code.co_firstlineno} is not loaded")
