"""Requirements such as `lift > 0`, `value > 80`, `B - A > 0.1` or `B > A`, and whether they hold.

A requirement is two sides and one of `>`, `>=`, `<`, `<=`. A side is numbers and names joined by
`+` and `-`; a name that is not a plain word is quoted. After both sides are collected, one value
must remain, or one minus another. Of one policy, `cvar(0.1)` and `quantile(0.5)` are about its
returns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from o2td.arguments import text as some_text
from o2td.errors import InputError
from o2td.evaluation.differences import LOGGED
from o2td.evaluation.returns import share_of
from o2td.evaluation.thresholds import CANNOT

if TYPE_CHECKING:
    from o2td.evaluation.result import Evaluation

_TOKEN = re.compile(
    r"\s*(?:(?P<op>>=|<=|>|<)|(?P<sign>[+-])"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<name>[^\W\d][\w.]*(?:\([\d.]+\))?)|(?P<quote>\"[^\"]*\"|'[^']*'))"
)
RETURNS = re.compile(r"(?P<name>cvar|quantile)\((?P<level>[\d.]+)\)")
ONE = ("value", LOGGED, "lift")  # what an evaluation of one policy has, besides its returns
_LIKE = "write it like lift > 0, value > 80 or B - A > 0.1"


@dataclass(frozen=True)
class Requirement:
    """A requirement and what the log says about it.

    Parameters
    ----------
    requirement : str
        As it was written.
    holds : bool or None
        Whether it does; None if the log cannot tell.
    words : str
        The same with the numbers.

    Examples
    --------
    >>> print(Requirement("lift > 0", True, "holds, lift is 0.3 [0.1, 0.5]"))
    lift > 0: holds, lift is 0.3 [0.1, 0.5]
    """

    requirement: str
    holds: bool | None
    words: str

    def __str__(self) -> str:
        return f"{self.requirement}: {self.words}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))


@dataclass(frozen=True)
class Quantity:
    """A number with its interval, approximation error and verdict."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    approximation: float | None
    verdict: str

    @classmethod
    def of(cls, name: str, row: Mapping[str, Any]) -> Quantity:
        """From what `as_dict` of an estimate or a difference has."""
        ends = (row["value"], row["low"], row["high"])
        return cls(name, *ends, row.get("approximation_error"), row.get("verdict", "trust"))

    def __str__(self) -> str:
        if self.value is None or self.low is None or self.high is None:
            return f"{self.name} has no estimate"
        said = f"{self.name} is {self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"
        if self.approximation:
            said += f" ± {self.approximation:.2g} of approximation error"
        return said


@dataclass(frozen=True)
class Parsed:
    """`plus - minus > bar`, or `<`; either name may be missing, not both."""

    plus: str | None
    minus: str | None
    above: bool
    bar: float
    strict: bool


def parse(requirement: str) -> Parsed:
    """A requirement as names and a bar.

    >>> parse("B > A + 0.1")
    Parsed(plus='B', minus='A', above=True, bar=0.1, strict=True)
    >>> parse("80 <= value").plus
    'value'
    """
    counts: dict[str, int] = {}
    bar, side, sign, op = 0.0, 1, 1, ""
    wants = True  # whether a name or a number must come next
    for kind, word in _tokens(requirement):
        if kind == "op":
            if op or wants:
                raise _refused(requirement, f"{word!r} is out of place")
            op, side, sign, wants = word, -1, 1, True
        elif kind == "sign":
            sign, wants = (sign if wants else 1) * (1 if word == "+" else -1), True
        elif not wants:
            raise _refused(requirement, f"nothing joins {word!r} to what comes before it")
        else:
            if kind == "number":
                bar -= side * sign * float(word)
            else:
                counts[word] = counts.get(word, 0) + side * sign
            sign, wants = 1, False
    if not op or wants:
        raise _refused(
            requirement,
            "one of >, >=, <, <= and a side after it are missing"
            if not op
            else "something is missing at its end",
        )
    return _arranged(requirement, counts, bar, op)


def _arranged(requirement: str, counts: Mapping[str, int], bar: float, op: str) -> Parsed:
    names = {name: count for name, count in counts.items() if count}
    plus = [name for name, count in names.items() if count == 1]
    minus = [name for name, count in names.items() if count == -1]
    if len(plus) > 1 or len(minus) > 1 or len(plus) + len(minus) != len(names) or not names:
        raise _refused(requirement, "it must be about one value, or one minus another")
    above = op in (">", ">=")
    if not plus:
        plus, minus, bar, above = minus, [], -bar, not above
    return Parsed(plus[0], minus[0] if minus else None, above, bar + 0.0, "=" not in op)


def _tokens(requirement: str) -> Sequence[tuple[str, str]]:
    place, found = 0, []
    while requirement[place:].strip():
        match = _TOKEN.match(requirement, place)
        if match is None or match.lastgroup is None:
            raise _refused(requirement, f"{requirement[place:].strip()!r} cannot be read")
        word = match[match.lastgroup]
        quoted = match.lastgroup == "quote"
        found.append(("name" if quoted else match.lastgroup, word[1:-1] if quoted else word))
        place = match.end()
    return found


def _refused(requirement: str, why: str) -> InputError:
    return InputError(f"requirement {requirement!r}: {why}; {_LIKE}")


def check(requirement: str, quantity: Callable[[Parsed], Quantity]) -> Requirement:
    """Whether it holds; `quantity` finds what it is about."""
    asked = parse(some_text("requirement", requirement))
    found = quantity(asked)
    holds = _holds(asked, found)
    words = {True: "holds", False: "does not hold", None: "undecided"}[holds]
    said = f"{words}, {found}"
    if found.verdict == CANNOT:
        said = f"{words}: the log cannot answer"
    return Requirement(requirement, holds, said)


def check_one(requirement: str, asked: Parsed, names: Sequence[str] = ONE) -> None:
    """Refuse a requirement on one policy that is about anything but these names or its returns."""
    if asked.minus is None and (found := RETURNS.fullmatch(asked.plus or "")):
        _level(requirement, **found.groupdict())
        return
    if (asked.plus, asked.minus) == ("value", LOGGED) and "lift" in names:
        return
    if asked.minus is not None or asked.plus not in names:
        known = asked.plus in names or RETURNS.fullmatch(asked.plus or "")
        wrong = asked.minus if known and asked.minus is not None else asked.plus
        why = f"{wrong!r} is not known here"
        if known and (wrong in names or RETURNS.fullmatch(wrong or "")):
            why = f"{asked.plus} - {wrong} is not known here"
        raise InputError(
            f"requirement {requirement!r}: {why}; an evaluation of one policy"
            f" has {', '.join(names)}, cvar(0.1) and quantile(0.5)"
        )


def sides_of(
    requirement: str, asked: Parsed, policies: Sequence[str], baseline: str
) -> tuple[str, str | None]:
    """What a requirement on several policies compares: one of them, and the other or None.

    With only one policy besides the baseline, `value` and `lift` refer to it.
    """
    others = [name for name in policies if name != baseline]
    only = others[0] if len(others) == 1 else None
    plus, minus = asked.plus or "", asked.minus
    if plus == "lift" and minus is None and only is not None:
        plus, minus = only, baseline
    if plus == "value" and only is not None:
        plus = only
    known = list(dict.fromkeys([LOGGED, *policies]))
    for name in (plus, *([] if minus is None else [minus])):
        if name not in known:
            several = name in ("lift", "value")
            said = "which policy's? write B - logged > 0" if several else "no such policy"
            raise InputError(
                f"requirement {requirement!r}: {name!r}: {said}; there are {', '.join(known)}"
            )
    return plus, minus


def _holds(asked: Parsed, found: Quantity) -> bool | None:
    if found.verdict == CANNOT or found.low is None or found.high is None:
        return None
    slack = found.approximation or 0.0
    low, high = found.low - slack - asked.bar, found.high + slack - asked.bar
    if not asked.above:
        low, high = -high, -low
    if low > 0.0 or (low == 0.0 and not asked.strict):
        return True
    return False if high < 0.0 or (high == 0.0 and asked.strict) else None


def of_evaluation(answer: Evaluation, requirement: str) -> Requirement:
    """A requirement on the value of one policy."""

    def quantity(asked: Parsed) -> Quantity:
        best = answer.recommended.as_dict() | {"verdict": answer.verdict}
        names: dict[str, Quantity] = {"value": Quantity.of("value", best)}
        if answer.logged and answer.logged.get("value") is not None:
            names[LOGGED] = Quantity.of(LOGGED, answer.logged)
        if answer.lift is not None:
            names["lift"] = Quantity.of("lift", answer.lift.as_dict())
        check_one(requirement, asked, list(names))
        if asked.minus is not None:
            return names["lift"]
        of_returns = RETURNS.fullmatch(asked.plus or "")
        if of_returns:
            return _of_returns(answer, requirement, **of_returns.groupdict())
        return names[asked.plus or ""]

    return check(requirement, quantity)


def _of_returns(answer: Evaluation, requirement: str, name: str, level: str) -> Quantity:
    """The mean of the worst share of the returns, or a quantile of them."""
    share = _level(requirement, name, level)
    (found,) = answer.returns([], share) if name == "cvar" else answer.returns([share], None)
    return Quantity.of(f"{name}({level})", found.as_dict())


def _level(requirement: str, name: str, level: str) -> float:
    """The share between the brackets."""
    try:
        return share_of(name, float(level))
    except ValueError:
        said = f"{name}({level}) has no share between 0 and 1; write {name}(0.1)"
        raise InputError(f"requirement {requirement!r}: {said}") from None
