"""Convert TeX between dollar signs to MathML at build time, so that pages need no script for it."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

# What arithmatex (pymdownx) leaves on a page for `$...$` and `$$...$$`.
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)
# A full stop or bracket must not be separated from its formula by a line break.
_ENDING = re.compile(
    r'(\(?<math[^>]*display="inline"[^>]*>(?:(?!</math>).)*</math>[.,;:)?]+)', re.S
)
_UPRIGHT = re.compile(r"<mi>(&#x00(?:39[1-9A-F]|3A[0-9]);)</mi>")
# latex2mathml writes some signs in ways that browsers set with gaps; these set them well: norm bars
# of one height, the asterisk and the transpose as letters instead of operators, no gap between a name
# and its parenthesis, and primes beside their letter, since fonts raise them already.
_BETTER = [
    (r"<mo>&#x02016;</mo>", '<mo stretchy="false" lspace="0" rspace="0">‖</mo>'),
    (r"<mo>&#x0002A;</mo>", '<mi mathvariant="normal">∗</mi>'),
    (r"<mo>&#x022A4;</mo>", '<mi mathvariant="normal">⊤</mi>'),
    (r'<mo>([a-z]+)</mo>(?=<mo stretchy="false">&#x00028;)', r"<mi>\1</mi>"),
    (
        r"<msup>(<mi[^>]*>[^<]*</mi>)<mi>&#x02032;</mi></msup>",
        r'<mrow>\1<mo lspace="0" rspace="0">′</mo></mrow>',
    ),
    (
        r"<msubsup>(<mi[^>]*>[^<]*</mi>)(<mi>[^<]*</mi>)<mi>&#x02032;</mi></msubsup>",
        r'<msub><mrow>\1<mo lspace="0" rspace="0">′</mo></mrow>\2</msub>',
    ),
]


def render(page: str) -> str:
    r"""The page with every formula as MathML; a formula that cannot be read stops the build.

    >>> render(r'for <span class="arithmatex">\(x\)</span>.').partition("</math>")[2]
    '.</span>'
    """
    made = _FORMULA.sub(lambda match: formula(match[3], match[2] == "["), page)
    return _ENDING.sub(r'<span class="unbroken">\1</span>', made)


def formula(tex: str, block: bool = False) -> str:
    r"""MathML of one formula, with its source as an annotation for copying.

    >>> "<msup>" in formula("X^*")
    True
    >>> formula(r"\nosuchthing")
    Traceback (most recent call last):
    ValueError: \nosuchthing: no such command in formula \nosuchthing
    """
    source = html.unescape(tex).strip()
    if block:
        return (
            f'<div class="formula">{"".join(_one(part, "block") for part in parts(source))}</div>'
        )
    return _one(source, "inline")


def parts(source: str) -> list[str]:
    r"""The parts between `\quad` and `\qquad`; shown side by side, or on a phone one below another.

    >>> parts(r"a = b, \qquad c = \text{x \quad y}")
    ['a = b,', 'c = \\text{x \\quad y}']
    """
    found = [""]
    for piece in re.split(r"(\\q?quad(?![a-zA-Z]))", source):
        depth = found[-1].count("{") - found[-1].count("}")
        if piece in (r"\quad", r"\qquad") and depth == 0:
            found.append("")
        else:
            found[-1] += piece
    return [part.strip() for part in found]


def _one(source: str, display: str) -> str:
    markup = convert(source, display=display)
    unknown = re.search(r"\\[A-Za-z]+", markup)
    if unknown or "<mi>&</mi>" in markup:
        raise ValueError(f"{unknown[0] if unknown else '&'}: no such command in formula {source}")
    # Greek capitals are upright, as in the paper; MathML would slant them.
    markup = _UPRIGHT.sub(r'<mi mathvariant="normal">\1</mi>', markup)
    for plain, better in _BETTER:
        markup = re.sub(plain, better, markup)
    label = html.escape(source, quote=True)
    return markup.replace("<math ", f'<math aria-label="{label}" ', 1)
