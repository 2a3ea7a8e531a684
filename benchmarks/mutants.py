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
TOLERANCE = 1e-7  # a smaller number in a comparison allows for rounding
HINTS = ("rolled",)  # compiles to nothing
ABSTRACT = ("NotImplementedError",)  # of a base class: never reached
IDLE = ("strict", "copy")  # arguments that only check what holds anyway, or save a copy
IDLE += (
    "no_wrap",
    "pad_edge",
    "show_header",
    "style",
    "markup",
    "highlight",
)  # and those that only lay out text
REVERSED = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt}


def named(node: Any, names: tuple[str, ...]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def limit(node: Any) -> bool:
    """Whether it is a private limit or a tolerance such as 1e-9, also negated or times a size."""
    if isinstance(node, ast.UnaryOp):
        return limit(node.operand)
    if isinstance(node, ast.BinOp):
        return limit(node.left) or limit(node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0.0 < node.value < TOLERANCE
    return named(node, BOUNDS) or (isinstance(node, ast.Name) and bool(PRIVATE.fullmatch(node.id)))


def shift(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift)


def negative(node: ast.AST) -> bool:
    """Of a shape: any negative number stands for what is left."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def nothing(node: ast.stmt) -> ast.stmt:
    """In place of a statement; a function that says `super` keeps the class that this refers to."""
    if any(named(one, ("super",)) for one in ast.walk(node)):
        return ast.copy_location(ast.Expr(ast.Name("__class__", ast.Load())), node)
    return ast.copy_location(ast.Pass(), node)


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
            return nothing(node)
        return self.inside(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        names = [one.id for one in node.targets if isinstance(one, ast.Name)]
        if "__all__" in names:
            return node
        if not names and self.place(node, "statement removed"):
            return nothing(node)
        return self.inside(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if self.place(node, "statement removed"):
            return nothing(node)
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


@cache
def machine(path: Path) -> frozenset[str]:
    """Functions that write machine code, which run only where something is compiled."""
    return frozenset(
        name
        for name, node in functions(parsed(path))
        for one in node.decorator_list
        if named(getattr(one, "func", one), ("lower_builtin", "type_callable"))
    )


def end(node: ast.AST) -> int:
    return int(getattr(node, "end_lineno", 0) or 0)


def changed(path: Path, chosen: int, at: Place) -> list[CodeType]:
    """The code of the function around a place with one change."""
    return compiled(Mutator(chosen).visit(parsed(path)), path, {at.first})


def compiled(tree: ast.Module, path: Path, firsts: set[int]) -> list[CodeType]:
    """The codes of functions that start in these lines, and of those that they create."""
    whole = compile(ast.fix_missing_locations(tree), str(path), "exec")
    return [
        code
        for outer in within(whole)
        if outer.co_firstlineno in firsts and outer.co_name != "<module>"
        for code in within(outer)
    ]


class Marker(ast.NodeTransformer):
    """Puts a call of `line_reached(number)` before the innermost statement around each line."""

    def __init__(self, numbers: dict[int, int]) -> None:
        self.numbers = dict(numbers)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            inside = getattr(node, name, None)
            if isinstance(inside, list):
                setattr(node, name, [new for one in inside for new in self.marked(one)])
        return node

    def marked(self, statement: Any) -> Iterator[Any]:
        for line in sorted(self.numbers):
            if statement.lineno <= line <= end(statement):
                call = ast.parse(f"line_reached({self.numbers.pop(line)})").body[0]
                yield ast.copy_location(call, statement)
        yield statement


def mark(path: Path, numbers: dict[int, int]) -> list[CodeType]:
    """Functions of a file that tell `line_reached` the number of a line when they get to it."""
    tree = parsed(path)
    around = {
        began(node)
        for _, node in functions(tree)
        if any(node.lineno <= line <= end(node) for line in numbers)
    }
    return compiled(Marker(numbers).visit(tree), path, around)


def began(node: ast.FunctionDef) -> int:
    """The line of a function's first decorator, or its own."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from within(one)


def put(codes: list[CodeType]) -> int:
    """Make the loaded functions at these places run this code from now on; how many there are."""
    new = {(one.co_filename, one.co_firstlineno, one.co_qualname): one for one in codes}
    hits = 0
    for one in gc.get_objects():
        if type(one) is FunctionType:
            old = one.__code__
            found = new.get((old.co_filename, old.co_firstlineno, old.co_qualname))
            if found is not None and found.co_freevars == old.co_freevars:
                one.__code__ = found
                hits += 1
    return hits
