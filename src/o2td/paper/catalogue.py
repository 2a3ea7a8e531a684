"""What the paper consists of here: its experiments as specs, and what each figure needs."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

from o2td.arguments import text
from o2td.errors import InputError
from o2td.experiments.spec import Spec, load_spec
from o2td.experiments.validate import suggestion

_SPECS = files("o2td.paper") / "specs"


def specs() -> list[str]:
    """The names of the paper's experiments.

    >>> "fig-random-seq" in specs()
    True
    """
    return sorted(
        file.name.removesuffix(".toml") for file in _SPECS.iterdir() if ".toml" in file.name
    )


def spec(name: str, profile: str | None = None) -> Spec:
    """One of the paper's experiments.

    Parameters
    ----------
    name : str
        Such as "fig-baird".
    profile : str, optional
        "quick" or "full"; as written in the file if None.

    Examples
    --------
    >>> spec("fig-random-seq", profile="full").runs
    200
    """
    if text("name", name) not in specs():
        raise InputError(f"no experiment {name!r}, {suggestion(name, specs())}")
    return load_spec((_SPECS / f"{name}.toml").read_text(), where=name).profile(profile)


class Ways(NamedTuple):
    """Whether an experiment is run with the settings in its file, and whether it is tuned."""

    shown: bool = True
    tuned: bool = False


EXPERIMENTS: dict[str, Ways] = {
    "fig-sotd": Ways(),
    "tab-sotd": Ways(),
    "fig-baird": Ways(tuned=True),
    "fig-random-seq": Ways(tuned=True),
    "fig-random-iid": Ways(tuned=True),
    "fig-car-seq": Ways(tuned=True),
    "fig-car-iid": Ways(tuned=True),
    "tab-boyan": Ways(),
    "fig-energy": Ways(shown=False, tuned=True),
    "more-car": Ways(),
    "more-collision": Ways(),
    "more-rooms": Ways(),
    "more-variance": Ways(shown=False, tuned=True),
    "more-variance-batch": Ways(),
    **{
        f"board-{domain}{kind}": Ways(shown=bool(kind), tuned=not kind)
        for domain in ("garnet", "collision", "four-rooms", "mountain-car")
        for kind in ("", "-batch")
    },
}

# What a user may ask for by name -> the experiments and studies that it needs.
FIGURES: dict[str, tuple[str, ...]] = {
    "fig-oblique": ("geometry",),
    "fig-sotd": ("fig-sotd", "tab-sotd"),
    "fig-baird": ("fig-baird",),
    "fig-random-seq": ("fig-random-seq",),
    "fig-random-iid": ("fig-random-iid",),
    "fig-car-seq": ("fig-car-seq", "more-car"),
    "fig-car-iid": ("fig-car-iid",),
    "tab-boyan": ("tab-boyan",),
    "fig-energy": ("fig-energy",),
    "theory": ("theory", "cost"),
    "nearness": ("nearness",),
    "stability": ("stability",),
    "near-optimal": ("near_optimal", "near_solvers"),
    "variance": ("more-variance", "more-variance-batch"),
    "published": ("published", "more-collision", "fig-baird"),
    "rooms": ("more-rooms",),
    "leaderboard": tuple(name for name in EXPERIMENTS if name.startswith("board-")),
}
