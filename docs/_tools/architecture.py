"""The picture of `docs/architecture.md`: packages and who imports whom, read from the source.

`python -m docs._tools.architecture` redraws it. A room is a package or module directly in
`src/o2td`; an arrow is an import that no other arrows imply.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "o2td"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

# From the top floor to the ground floor; imports never go up.
FLOORS: dict[str, tuple[str, ...]] = {
    "commands": ("cli",),
    "clients": ("paper", "checks", "interactive", "sklearn"),
    "questions": ("experiments", "evaluation"),
    "data and truth": ("sources", "metrics", "exact"),
    "algorithms": ("learners", "solvers", "cuts", "emphasis", "kernels"),
    "problems": ("domains", "problem", "simulated", "rollouts", "features", "transitions", "mdp"),
    "chains": ("model", "sampling", "chain"),
}
GROUND = "ground"
_WIDTH, _BOX, _HIGH, _GAP, _FLOOR, _LEFT = 960, 104, 34, 14, 92, 128


def rooms() -> list[str]:
    """Every package and module directly in the library."""
    found = [path.stem for path in SOURCE.glob("*.py")]
    found += [path.parent.name for path in SOURCE.glob("*/__init__.py")]
    return sorted(name for name in found if not name.startswith("_"))


def floors() -> dict[str, tuple[str, ...]]:
    """Rooms by floor; rooms that no floor lists are on the ground floor, for all to use."""
    listed = {room for row in FLOORS.values() for room in row}
    return {**FLOORS, GROUND: tuple(room for room in rooms() if room not in listed)}


def imports() -> dict[str, set[str]]:
    """The rooms that each room imports at run time; imports for type checkers are left out."""
    known = set(rooms())
    found: dict[str, set[str]] = {room: set() for room in known}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room in known:
            for name in _imported(ast.parse(path.read_text(encoding="utf-8"))):
                found[room] |= {name} & known - {room}
    return found


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "o2td":
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("o2td."):
            yield str(node.module).split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (n.name.split(".")[1] for n in node.names if n.name.startswith("o2td."))
        yield from _imported(node)


def arrows() -> set[tuple[str, str]]:
    """Imports above the ground floor that are not implied by a longer chain of imports."""
    ground = set(floors()[GROUND])
    graph = {a: {b for b in to if b not in ground} for a, to in imports().items()}
    return {
        (a, b)
        for a, to in graph.items()
        if a not in ground
        for b in to
        if not any(b in _reached(graph, c) for c in to - {b})
    }


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    seen, left = set(), [start]
    while left:
        room = left.pop()
        if room not in seen:
            seen.add(room)
            left += graph[room]
    return seen - {start}


def draw() -> str:
    """The picture, as SVG."""
    places, parts, y = {}, [], 20
    for name, row in floors().items():
        lines = [row[k : k + 7] for k in range(0, len(row), 7)]
        high = len(lines) * (_HIGH + 12)
        parts.append(
            f'<rect class="floor" x="8" y="{y - 10}" width="{_WIDTH - 16}" height="{high + 8}" rx="8"/>'
        )
        parts.append(f'<text class="name" x="20" y="{y + 22}">{escape(name)}</text>')
        for k, line in enumerate(lines):
            left = _LEFT + (7 - len(line)) * (_BOX + _GAP) // 2  # centred on the floor
            for j, room in enumerate(line):
                places[room] = (left + j * (_BOX + _GAP), y + k * (_HIGH + 12))
        y += high + _FLOOR - _HIGH - 12
    lines_ = [_arrow(places[a], places[b]) for a, b in sorted(arrows())]
    boxes = [_room(room, *place) for room, place in places.items()]
    return _PAGE.format(width=_WIDTH, height=y - 30, body="\n".join([*parts, *lines_, *boxes]))


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x, y), (u, v) = start, end
    if y == v:  # neighbours on one floor: below their boxes
        low = y + _HIGH
        return (
            f'<path d="M{x + _BOX // 2} {low}C{x + _BOX // 2} {low + 18},{u + _BOX // 2} {low + 18},'
            f'{u + _BOX // 2} {low + 2}" marker-end="url(#tip)"/>'
        )
    a, b = x + _BOX // 2, u + _BOX // 2
    middle = (y + _HIGH + v) // 2
    return (
        f'<path d="M{a} {y + _HIGH}C{a} {middle},{b} {middle},{b} {v - 2}" marker-end="url(#tip)"/>'
    )


def _room(name: str, x: int, y: int) -> str:
    box = f'<rect class="room" x="{x}" y="{y}" width="{_BOX}" height="{_HIGH}" rx="5"/>'
    return f'{box}<text x="{x + _BOX // 2}" y="{y + 22}" text-anchor="middle">{escape(name)}</text>'


_PAGE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>Rooms of o2td and their imports</title>
<style>
svg {{ background: #fff; font: 13px system-ui, sans-serif; }}
.floor {{ fill: #f5f7f9; }}
.name {{ fill: #5a626b; font-style: italic; }}
.room {{ fill: #fff; stroke: #0072b2; }}
path {{ fill: none; stroke: #8a949e; stroke-width: 1.2; }}
</style>
<defs>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<polygon points="0,0 8,4 0,8" fill="#8a949e"/></marker>
</defs>
{body}
</svg>
"""


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
