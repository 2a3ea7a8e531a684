"""The paper's studies: exact or special measurements, each a function over numbered problems."""

from __future__ import annotations

from o2td.experiments.studies import StudyPlan
from o2td.paper.studies.cost import cost
from o2td.paper.studies.families import FAMILIES, FRESH, LATER, SETTLED, TEXTBOOK
from o2td.paper.studies.geometry import diverging_cycle, geometry, three_states
from o2td.paper.studies.landing import nearness, stability
from o2td.paper.studies.near_optimal import near_optimal, near_solvers
from o2td.paper.studies.published import published
from o2td.paper.studies.theory import theory

__all__ = [
    "FAMILIES",
    "FRESH",
    "LATER",
    "SETTLED",
    "STUDIES",
    "TEXTBOOK",
    "diverging_cycle",
    "three_states",
]

STUDIES: dict[str, StudyPlan] = {
    "geometry": StudyPlan(geometry, 1, 1, 1, 11),
    "theory": StudyPlan(theory, 100, 200, 20, 12),
    "nearness": StudyPlan(nearness, 200, 200, 20, 13),
    "stability": StudyPlan(stability, 200, 1000, 50, 14),
    "published": StudyPlan(published, 200, 1000, 50, 16),
    "near_optimal": StudyPlan(near_optimal, 40, 240, 1, 7_340_051),
    "near_solvers": StudyPlan(near_solvers, 40, 240, 8, 5_520_917),
    "cost": StudyPlan(cost, 1, 1, 1, 15, alone=True),
}
