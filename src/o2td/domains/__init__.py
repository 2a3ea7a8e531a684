"""Prediction problems from the literature, one file per domain; each function returns a problem.

>>> from o2td import domains
>>> domains.baird(form="survey")
Problem('baird', states=8, actions=2, features=9)
>>> "collision" in domains.__all__
True
"""

from __future__ import annotations

from o2td.domains.baird import baird
from o2td.domains.boyan_chain import boyan_chain
from o2td.domains.collision import collision
from o2td.domains.energy_storage import energy_storage
from o2td.domains.four_rooms import FourRoomsLanes, four_rooms, four_rooms_lanes
from o2td.domains.garnet import garnet
from o2td.domains.gymnasium import from_gymnasium
from o2td.domains.mountain_car import mountain_car
from o2td.domains.random_mdp import random_mdp
from o2td.domains.random_walk import random_walk
from o2td.registry import DOMAINS

__all__ = [
    "FourRoomsLanes",
    "baird",
    "boyan_chain",
    "collision",
    "energy_storage",
    "four_rooms",
    "four_rooms_lanes",
    "from_gymnasium",
    "garnet",
    "mountain_car",
    "random_mdp",
    "random_walk",
]

for _domain in (
    baird,
    boyan_chain,
    collision,
    energy_storage,
    four_rooms,
    from_gymnasium,
    garnet,
    mountain_car,
    random_mdp,
    random_walk,
):
    DOMAINS.register(_domain.__name__, _domain)
