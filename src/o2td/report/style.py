"""How methods look: one colour a method in every figure, names and settings as readers write them.

Colours are Okabe & Ito's and Tol's, which people with colour blindness can tell apart; variants of
one method differ in dashes and marker too, so that no figure depends on colour alone.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from o2td.report.statistics import number

__all__ = ["Look", "look", "pretty", "settings"]

LINES = ("-", "--", "-.", ":")
MARKERS = "osD^vPX*<>hd"


class Look(NamedTuple):
    """Colour, dashes and marker of a line."""

    colour: str
    dash: str = "-"
    marker: str = "o"


_LOOKS = {
    "TD": Look("#4d4d4d"),
    "LSTD": Look("#000000", "-", "s"),
    "ETD": Look("#e69f00", "-", "^"),
    "LSETD": Look("#e69f00", "-.", "^"),
    "O2TD": Look("#0072b2", "-", "D"),
    "O2TD sample": Look("#0072b2", "-", "D"),
    "O2TD printed": Look("#56b4e9", "--", "v"),
    "O2TD state": Look("#332288", "-.", "P"),
    "O2TD moments": Look("#882255", "-", "X"),
    "GTD2": Look("#009e73", "-", "s"),
    "GTD2 omega": Look("#117733", "--", "s"),
    "GTD2MP": Look("#009e73", ":", "<"),
    "GTD": Look("#999933", "-", ">"),
    "TDC": Look("#cc79a7", "-", "h"),
    "TDCMP": Look("#cc79a7", ":", "h"),
    "TDRC": Look("#d55e00", "-", "*"),
    "HTD": Look("#aa4499", "-.", "d"),
    "VTrace": Look("#661100", "-", "v"),
    "TreeBackup": Look("#6699cc", "-", "^"),
    "ABTD": Look("#888888", "-.", "d"),
    "ResidualGradient": Look("#b8860b", "-", "P"),
    "RG": Look("#b8860b", "-", "P"),
    "BellmanResidual": Look("#b8860b", "-.", "P"),
    "SOTD": Look("#0072b2", "-", "o"),
    "SOTD normalized": Look("#0072b2", "-", "o"),
    "SOTD ordinary": Look("#56b4e9", "--", "v"),
    "DiagonalSOTD": Look("#332288", "-.", "X"),
    "PluginOptimal": Look("#882255", "-", "X"),
    "MonteCarlo": Look("#117733", "-", "*"),
    "DantzigTD": Look("#aa4499", ":", "<"),
    "Averager": Look("#999933", ":", ">"),
    "V": Look("#000000", "-", "*"),
    "v* (best)": Look("#d55e00", "-", "*"),
    "best": Look("#d55e00", "-", "*"),
}
_UNKNOWN = ("#44aa99", "#ddcc77", "#cc6677", "#88ccee")
_TRACE = re.compile(r"\(?(?:lambda |λ=)?0\.9\)?$")


def look(label: str) -> Look:
    """The look of a method: that of its longest known beginning, dashed where it has a trace.

    >>> look("TD").colour == look("TD lambda 0.9").colour
    True
    >>> look("TD lambda 0.9").dash
    '--'
    """
    known = max(
        (name for name in _LOOKS if re.match(re.escape(name) + r"(?![A-Za-z0-9])", label)),
        key=len,
        default=None,
    )
    if known is None:
        return Look(_UNKNOWN[sum(label.encode()) % len(_UNKNOWN)])
    found = _LOOKS[known]
    rest = label[len(known) :].strip()
    if _TRACE.search(rest):
        return found._replace(dash="--")
    if rest in ("carried", "beta 0.5"):
        return found._replace(dash=":")
    return found


def pretty(label: str) -> str:
    """A label as readers write it.

    >>> pretty("O2TD sample"), pretty("TD lambda 0.9"), pretty("O2TD state 0.9")
    ('O²TD sample', 'TD(λ = 0.9)', 'O²TD state(λ = 0.9)')
    """
    text = label.replace("O2TD", "O²TD").replace("beta", "β =").replace("zeta", "ζ =")
    text = re.sub(r"\s+lambda ([0-9.]+)", r"(λ = \1)", text)
    text = re.sub(r"\((0?\.[0-9]+)\)", r"(λ = \1)", text)
    return re.sub(r"(?<![=.0-9])\s+(0\.[0-9]+)$", r"(λ = \1)", text)


_SYMBOLS = {"step_size": "α", "second_step_size": "α_w", "ridge": "ridge"}


def settings(parameters: str) -> str:
    """The step sizes in a record's parameters.

    >>> settings('{"omega":"sample","second_step_size":0.02,"step_size":0.005}')
    'α = 0.005, α_w = 0.02'
    """
    values = json.loads(parameters)
    parts = []
    for name, symbol in _SYMBOLS.items():
        value = values.get(name)
        if isinstance(value, dict) and "power" in value:
            parts.append("{} = {:g}·t^−{:g}".format(symbol, *value["power"]))
        elif isinstance(value, (int, float)):
            parts.append(f"{symbol} = {number(float(value))}")
        elif value is not None:
            parts.append(f"{symbol} = {value}")
    return ", ".join(parts)


def step_size(parameters: str) -> float | None:
    """The step size in a record's parameters, if it is a number."""
    value = json.loads(parameters).get("step_size")
    return float(value) if isinstance(value, (int, float)) else None
