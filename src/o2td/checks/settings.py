"""Which settings of a class are checked: its defaults, and every option that changes what it does."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

from o2td.cuts import ActionDependent, Target
from o2td.emphasis import FollowOn, Omega
from o2td.errors import InputError

# Values tried for a parameter of this name, in addition to the defaults, and with traces if those
# exist. A class may add whole settings of its own: `check_parameters = ({"name": value, ...}, ...)`.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "emphasis": (FollowOn(), Omega("sample"), Omega("state"), Omega("moments")),
    "omega": ("printed", "state", "moments"),
    "decay": (0.5,),
    "clip_update": (True,),
    "form": ("sampled", "expanded"),
    "average": (True,),
    "skip_zero_ratio": (True,),
    "l1": (0.01,),
    "radius": (0.5,),
    "clip": (1.0,),
    "cut": (Target(), ActionDependent(0.7)),
    "double": (True,),
    "ridge": (0.01,),
    "weighting": ("ordinary",),
    "sampling": ("double", "aggregated", "single"),
    "start": ("td",),
    "solver": ("gradient", "nesterov"),
    "rho_on": ("target",),
    "weighted": (True, False),
    "nonnegative": (True,),
    "denoise": (True,),
    "zeta": (0.7,),
    "ratios": ("trajectory",),
    "truncated": ("drop",),
}
TRACES = {"trace": 0.7}


def settings(kind: type) -> list[dict[str, Any]]:
    """Keyword arguments under which a class is checked."""
    known = inspect.signature(kind).parameters
    longer = {name: value for name, value in TRACES.items() if name in known}
    found: list[dict[str, Any]] = [{}, longer] if longer else [{}]
    for name in known:
        for value in OPTIONS.get(name, ()):
            for setting in ({name: value, **longer}, {name: value}):
                if known[name].default != value and _accepted(kind, setting):
                    found.append(setting)
                    break
    return found + [dict(extra) for extra in getattr(kind, "check_parameters", ())]


def members(kind: type) -> Iterator[Any]:
    """One instance for every setting of a class."""
    for setting in settings(kind):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield kind(**setting)


def _accepted(kind: type, setting: dict[str, Any]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kind(**setting)
        except InputError:
            return False
    return True
