"""Text on its way to a terminal: names from outside stay text, whatever they hold.

A column, a file or a policy may be called ``[red]x``, or hold the escape sequences by which a
terminal is told to move its cursor, change its title or hide what follows. `printable` makes those
visible, and `console` gives rich's console with its own markup turned off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console", "printable", "printable_json"]

# C0 but tab and newline, delete, C1, and what reverses or hides the order of characters.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_PICTURES = 0x2400  # one visible character for each of C0
_DELETE = 0x7F


def printable(text: str) -> str:
    r"""`text` with its control characters written out.

    >>> printable("state \x1b[31m")
    'state \\x1b[31m'
    """
    return _CONTROLS.sub(lambda found: _written(found[0]), text)


def printable_json(document: str) -> str:
    r"""The same for JSON, which stays the same document.

    >>> printable_json('"\x9b31m"')
    '"\\u009b31m"'
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console of rich that shows text as it is: no markup, no emoji codes, no control characters.

    >>> console(width=20).print("[bold]name[/bold] :smile:")
    [bold]name[/bold]
    :smile:
    """
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def render(self, *given: Any, **options: Any) -> Iterable[Segment]:
            for segment in super().render(*given, **options):
                if segment.control or not _CONTROLS.search(segment.text):
                    yield segment
                else:
                    yield Segment(_CONTROLS.sub(_picture, segment.text), segment.style)

    return Plain(markup=False, emoji=False, highlight=False, stderr=stderr, width=width)


def _written(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _picture(found: re.Match[str]) -> str:
    """One visible character for another, so that columns of a table keep their width."""
    code = ord(found[0])
    if code < 32:
        return chr(_PICTURES + code)
    return "\u2421" if code == _DELETE else "\ufffd"
