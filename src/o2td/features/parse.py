"""Feature maps from a short text, for the command line and experiment files.

`NAME[:NUMBER[xNUMBER…]][,OPTION=VALUE…]`, such as `fourier:3`, `tiles:8x10,hashed=4096` or
`fourier:5,scale=coefficient,coupled=false`. Names are looked up in the registry, so feature maps of
other packages are found too: a class, or anything callable, that takes the numbers and options (or
has a classmethod `from_spec` that does).
"""

from __future__ import annotations

import inspect
from typing import Any

from o2td.errors import InputError, option
from o2td.registry import FEATURES

_WORDS = {"true": True, "false": False, "none": None}


def parse(spec: str) -> Any:
    """Return the feature map that `spec` describes, not yet fitted.

    Examples
    --------
    >>> from o2td.features import parse
    >>> parse("fourier:3")
    Fourier(order=3)
    >>> parse("tiles:8x10,hashed=4096")
    Tiles(tilings=8, bins=10, hashed=4096)
    >>> parse("wavelet:3")
    Traceback (most recent call last):
    o2td.errors.InputError: features: no 'wavelet'; choose from aggregate:BINS, ...
    """
    if not isinstance(spec, str):
        raise InputError(f"features: {spec!r} is not a text such as 'fourier:3'")
    who = option("features", f"--features {spec}")
    head, *rest = (part.strip() for part in spec.split(","))
    name, _, numbers = head.partition(":")
    if not name or name not in FEATURES:
        raise InputError(f"{who}: no {name!r}; choose from {', '.join(available())}")
    factory = FEATURES[name]
    values = [_value(text) for text in numbers.split("x")] if numbers else []
    if "" in values:
        raise InputError(f"{who}: a number is missing; write it as in fourier:3 or tiles:8x8")
    make = getattr(factory, "from_spec", factory)
    form = str(getattr(factory, "spec", name))
    try:
        if make is factory and ":" in form and len(values) > len(form.split(":")[1].split("x")):
            raise ValueError("too many numbers")
        options = dict(_option(text) for text in rest)
        inspect.signature(factory).bind_partial(**options)
        inspect.signature(make).bind(*values, **options)
    except (TypeError, ValueError) as error:
        known = ", ".join(inspect.signature(factory).parameters)
        raise InputError(
            f"{who}: {spec!r} cannot be read ({error}); write {form}, options are {known}"
        ) from None
    return make(*values, **options)


def available() -> list[str]:
    """The spec syntax of each known feature map.

    >>> from o2td.features.parse import available
    >>> "fourier:ORDER" in available()
    True
    """
    # A map whose package cannot be loaded is still listed, by its name.
    shown = []
    for name in FEATURES.names():
        try:
            shown.append(str(getattr(FEATURES[name], "spec", name)))
        except Exception:
            shown.append(name)
    return [text for text in shown if " " not in text]


def _option(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    if not key or not value:
        raise ValueError(f"{text!r} is not OPTION=VALUE")
    return key.strip(), _value(value.strip())


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
