"""How methods look: one colour per method in every figure, names and settings as readers write them.

Colours are Okabe & Ito's and Tol's, which people with colour blindness can distinguish; variants of
one method also differ in dashes and marker, so that no figure depends on colour alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from o2td.report.statistics import number

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
    "O2TD (state)": Look("#332288", "-.", "P"),
    "O2TD state": Look("#332288", "-.", "P"),
    "O2TD moments": Look("#882255", "-", "X"),
    "GTD2": Look("#009e73", "-", "s"),
    "GTD2 omega": Look("#117733", "--", "s"),
    "GTD2MP": Look("#009e73", ":", "<"),
    "GTD": Look("#999933", "-", ">"),
    "TDC": Look("#cc79a7", "-", "h"),
    "TDCMP": Look("#cc79a7", ":", "h"),
    "TDRC": Look("#d55e00", "-", "d"),
    "HTD": Look("#aa4499", "-.", "d"),
    "VTrace": Look("#661100", "-", "v"),
    "TreeBackup": Look("#6699cc", "-", "^"),
    "ABTD": Look("#888888", "-.", "d"),
    "ResidualGradient": Look("#b8860b", "-", "P"),
    "RG": Look("#b8860b", "-", "P"),
    "BellmanResidual": Look("#b8860b", "-.", "P"),
    "SOTD": Look("#44aa99", "-", "o"),
    "SOTD normalized": Look("#44aa99", "-", "o"),
    "SOTD ordinary": Look("#44aa99", "--", "v"),
    "DiagonalSOTD": Look("#44aa99", "-.", "X"),
    "PluginOptimal": Look("#cc6677", "-", "s"),
    "MonteCarlo": Look("#117733", "-", "*"),
    "DantzigTD": Look("#aa4499", ":", "<"),
    "Averager": Look("#999933", ":", ">"),
    "ARCTD": Look("#a50026", "-", "P"),
    "ATD": Look("#7f7f00", "-.", "X"),
    "DifferentialTD": Look("#4d4d4d", ":", "v"),
    "DifferentialLSTD": Look("#000000", ":", "v"),
    "GEMETD": Look("#e69f00", ":", "D"),
    "LSTDQ": Look("#000000", ":", "D"),
    "PERETD": Look("#c17d00", "-", "<"),
    "ProximalGTD2MP": Look("#006d4e", "-.", ">"),
    "TrueOnlineETD": Look("#e69f00", "-", "v"),
    "TrueOnlineGTD": Look("#999933", "-", "X"),
    "TrueOnlineHTD": Look("#aa4499", "-", "X"),
    "TrueOnlineTD": Look("#4d4d4d", "-", "P"),
    "TruncatedETD": Look("#b35806", "-", ">"),
    "VarianceTD": Look("#7b6888", "-", "h"),
    "WISGTD": Look("#1b7837", "-.", "s"),
    "WISTD": Look("#1b7837", "-", "d"),
    "V": Look("#000000", "-", "*"),
    "v* (best)": Look("#d55e00", "-", "*"),
    "best": Look("#d55e00", "-", "*"),
}
_SPELLED = {
    "RG": "ResidualGradient",
    "O2TD (state)": "O2TD state",
    "SOTD ordinary": "SOTD as printed",
    "SOTD normalized": "SOTD normalised by Σρ",
}
_UNKNOWN = ("#bbbb44", "#ddcc77", "#88ccee")
_TRACE = re.compile(r"\(?(?:lambda |λ=)?0\.9\)?$")


def plain(label: str) -> str:
    """A variant's name as `o2td.exact` writes it, in the words of the experiments.

    >>> plain("O2TD(trace=0.9, omega=state)"), plain("TD(trace=0.9)"), plain("O2TD")
    ('O2TD state lambda 0.9', 'TD lambda 0.9', 'O2TD sample')
    """
    name, _, inside = label.rstrip(")").partition("(")
    if (name != "O2TD" and "=" not in inside) or " " in name:
        return label
    options = dict(part.split("=", 1) for part in inside.split(", ") if "=" in part)
    words = [name]
    words += [options.pop("omega", "sample")] if name == "O2TD" else []
    words += [f"lambda {options.pop('trace')}"] if "trace" in options else []
    words += ["from TD"] if options.pop("start", "") == "td" else []
    return " ".join([*words, *(f"{key}={value}" for key, value in options.items())])


def look(label: str) -> Look:
    """The look of a method: that of its longest known prefix, dashed if it has a trace.

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
        name = re.split(r"[ (,]", label, maxsplit=1)[0]
        colour = _UNKNOWN[sum(name.encode()) % len(_UNKNOWN)]
        found, rest = Look(colour), label[len(name) :].strip()
    else:
        found, rest = _LOOKS[known], label[len(known) :].strip()
    if _TRACE.search(rest):
        return found._replace(dash="--")
    if rest in ("carried", "beta 0.5"):
        return found._replace(dash=":")
    return found


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """The looks of the methods of one figure, all different.

    >>> looks(["O2TD", "O2TD sample"])["O2TD sample"].dash
    '--'
    """
    found: dict[str, Look] = {}
    for label in labels:
        first = look(label)
        colours = _UNKNOWN if first.colour in _UNKNOWN else (first.colour,)
        start = colours.index(first.colour)
        choices = (
            Look(colour, dash, marker)
            for marker in (first.marker, *MARKERS)
            for dash in (first.dash, *LINES)
            for colour in (*colours[start:], *colours[:start])
        )
        found[label] = next((one for one in choices if one not in found.values()), first)
    return found


def pretty(label: str) -> str:
    """A label as readers write it.

    >>> pretty("O2TD sample"), pretty("TD lambda 0.9"), pretty("O2TD state 0.9")
    ('O²TD sample', 'TD(λ = 0.9)', 'O²TD state, λ = 0.9')
    >>> pretty("ABTD zeta 0.5"), pretty("GTD2 omega state")
    ('ABTD(ζ = 0.5)', 'GTD2, ω state')
    """
    label = _SPELLED.get(label, label).replace(" omega ", ", ω ").replace("O2TD", "O²TD")
    found = re.fullmatch(r"(.*?)[ (]*(lambda|beta|zeta)? ?(0\.[0-9]+)\)?", label)
    if found is None:
        return label
    name, word, value = found.groups()
    letter = {"beta": "β", "zeta": "ζ"}.get(word, "ζ" if name == "ABTD" else "λ")
    return f"{name}, {letter} = {value}" if " " in name else f"{name}({letter} = {value})"


_SYMBOLS = {"step_size": "α", "second_step_size": "α_w", "ridge": "ridge"}
_OTHERS = {"trace": "λ", "decay": "β", "zeta": "ζ", "regularizer": "κ", "omega": "ω"}


def settings(parameters: str, every: bool = False) -> str:
    """The step sizes in a record's parameters or, with `every`, all of these.

    >>> settings('{"omega":"sample","second_step_size":0.02,"step_size":0.005}')
    'α = 0.005, α_w = 0.02'
    >>> settings('{"step_size":0.1,"trace":0.9,"average":true}', every=True)
    'α = 0.1, λ = 0.9, average = yes'
    """
    values = json.loads(parameters)
    names = [name for name in _SYMBOLS if values.get(name) is not None]
    if every:
        names += [name for name in values if name not in _SYMBOLS and values[name] is not None]
    return ", ".join(f"{symbol(name)} = {_setting(values[name])}" for name in names)


def symbol(parameter: str) -> str:
    """How a parameter is written: its symbol, or its name.

    >>> symbol("trace"), symbol("clip_update")
    ('λ', 'clip update')
    """
    return _SYMBOLS.get(parameter) or _OTHERS.get(parameter) or parameter.replace("_", " ")


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict) and "power" in value:
        return "{:g}·t^−{:g}".format(*value["power"])
    if isinstance(value, (int, float)):
        return size(float(value))
    return str(value)


def size(value: float) -> str:
    """A step size, written as short as possible.

    >>> size(0.03), size(3e-06)
    ('0.03', '3·10⁻⁶')
    """
    text = f"{value:.4g}"
    return number(value, 1) if "e" in text else text


def setting(parameters: str, name: str = "step_size") -> float | None:
    """One of a record's parameters, if it is a number.

    >>> setting('{"step_size":0.1}'), setting('{"step_size":"auto"}')
    (0.1, None)
    """
    value = json.loads(parameters).get(name)
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if known else None
