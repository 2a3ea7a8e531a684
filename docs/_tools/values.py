"""Measured values in pages: `make docs` writes what stands between two markers.

<!--= nearness.TD.median -->1.52<!--/-->        a number, three significant digits
<!--= paper.baird.star.rmse.GTD2 | .4g -->…     with a format
<!--= claims -->…<!--/-->                       a block, from `_tools.blocks`

The markers are comments, so a page reads as it stands. A marker right after a backtick is code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
_MARK = re.compile(r"(?<!`)<!--= ([^|\n]+?)(?: \| ([^\n]+?))? -->(.*?)<!--/-->", re.S)
_NUMBER = re.compile(r"[−-]?\d[\d,]*(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?")
_ROUNDING = 1e-9  # smaller numbers are rounding errors, and differ between machines


def fill(text: str, data: Mapping[str, Any], blocks: Mapping[str, Callable[[], str]]) -> str:
    """`text` with every value between markers updated.

    >>> fill("<!--= a.b --><!--/--> of <!--= a.c | .1f -->9<!--/-->", {"a": {"b": 2.34567, "c": 10}}, {})
    '<!--= a.b -->2.35<!--/--> of <!--= a.c | .1f -->10.0<!--/-->'
    >>> fill("`<!--= a.b --><!--/-->`", {}, {})
    '`<!--= a.b --><!--/-->`'
    >>> fill("<!--= a.x --><!--/-->", {"a": {"b": 1}}, {})
    Traceback (most recent call last):
    KeyError: "no 'a.x' among the measured numbers: 'x' is not one of b"
    """

    def value(match: re.Match[str]) -> str:
        name, form = match[1], match[2]
        if name == "output":  # a command's: see `_tools.outputs`
            return match[0]
        new = blocks[name]().strip() if name in blocks else _shown(look_up(data, name), form)
        new = f"\n\n{new}\n\n" if "\n" in new else new
        return f"<!--= {name}{f' | {form}' if form else ''} -->{new}<!--/-->"

    return _MARK.sub(value, text)


def unmarked(text: str) -> str:
    """The page without markers, as the site shows it.

    >>> unmarked("<!--= a.b -->2.35<!--/--> of it")
    '2.35 of it'
    """
    return re.sub(r"(?<!`)(?:<!--= [^\n]+? -->|<!--/-->)", "", text)


def same(one: str, other: str, tolerance: float = 0.01) -> bool:
    """Whether two texts differ only slightly, and only in numbers; times in seconds may differ freely.

    >>> same("1.52 of 40", "1.53 of 40"), same("1.52 of 40", "1.72 of 40"), same("a", "b")
    (True, False, False)
    >>> same("off by 3 × 10⁻¹⁶", "off by 0")
    True
    """
    one, other = (re.sub(r"\d[\d.]* s\b", "some s", text) for text in (one, other))
    if _NUMBER.sub("#", one).split() != _NUMBER.sub("#", other).split():
        return False
    pairs = zip(map(_read, _NUMBER.findall(one)), map(_read, _NUMBER.findall(other)), strict=True)
    return all(near(a, b, tolerance) for a, b in pairs)


def _read(shown: str) -> float:
    digits, _, power = shown.partition(" × 10")
    number = float(digits.translate(_PLAIN).replace(",", ""))
    return number * 10.0 ** int(power.translate(_PLAIN)) if power else number


def near(a: float, b: float, tolerance: float = 0.01) -> bool:
    """Whether two numbers nearly agree; numbers at rounding level count as zero."""
    size = max(abs(a), abs(b))
    return size < _ROUNDING or abs(a - b) <= tolerance * size


def look_up(data: Any, name: str) -> Any:
    """The entry of nested dicts and lists at a dotted name; `TD(trace=0.9)` is one part of a name."""
    found = data
    for word in re.findall(r"[^.(]+(?:\([^)]*\))?", name):
        if isinstance(found, list):
            found = found[int(word)]
        elif isinstance(found, dict) and word in found:
            found = found[word]
        else:
            among = ", ".join(list(found)[:60]) if isinstance(found, dict) else found
            raise KeyError(
                f"no {name!r} among the measured numbers: {word!r} is not one of {among}"
            )
    return found


def _shown(value: Any, form: str | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return number(value) if form is None else typeset(format(value, form))
    return str(value)


def number(value: Any, digits: int = 3) -> str:
    """Three significant digits, without exponents where they can be avoided.

    >>> number(1234.5), number(-0.01234), number(1e-16), number(None), number("inf")
    ('1,234', '−0.0123', '0', '–', '∞')
    >>> number(0.0001234), number(15880.0), number(1.588e7)
    ('1.23 × 10⁻⁴', '15,880', '1.59 × 10⁷')
    """
    if value is None:
        return "–"
    if value == "inf":
        return "∞"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if abs(value) < 1e-9:
        return "0"
    if not isinstance(value, int) and not 1e-3 <= abs(value) < 1e6:
        return typeset(f"{value:.{digits - 1}e}")
    if isinstance(value, int) or abs(value) >= 1000:
        return typeset(f"{value:,.0f}")
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    shown = f"{value:#.{digits}g}" if whole < digits else f"{value:.0f}"
    return typeset(shown.rstrip("."))


def typeset(shown: str) -> str:
    """A formatted number with a real minus sign and a power of ten.

    >>> typeset("-4e-16"), typeset("1.5"), typeset("0e+00")
    ('−4 × 10⁻¹⁶', '1.5', '0')
    """
    digits, _, exponent = shown.partition("e")
    if exponent and not float(digits):
        return "0"
    power = f" × 10{str(int(exponent)).translate(_RAISED)}" if exponent else ""
    return digits.replace("-", "−") + power
