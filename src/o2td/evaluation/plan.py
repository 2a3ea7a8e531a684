"""Which systems to fit for the methods asked for, and their answers as cases to be judged."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.evaluation.basis import Actions, Cells
from o2td.evaluation.bootstrap import Interval, bca, rule_of_three, sandwich, student
from o2td.evaluation.cells import CellSystem
from o2td.evaluation.episodes import Episodes, Floats, Log
from o2td.evaluation.features import JUDGED, Chosen, choose, first_episodes
from o2td.evaluation.fitting import AnySystem, Blend, Fit, Fitting, Influences, across, middle
from o2td.evaluation.importance import FAMILY, ROBUST, SHORT, Corrected
from o2td.evaluation.model import ValueModel
from o2td.evaluation.moments import Spread
from o2td.evaluation.online import Replicated, online
from o2td.evaluation.reach import unlogged_regions
from o2td.evaluation.select import agreeing
from o2td.evaluation.survey import FEWEST, Survey
from o2td.evaluation.systems import System
from o2td.evaluation.verdicts import ONE_PASS, ROUNDING, Case

FITS = ("lstd", "plugin", "lstdq", "lsetd")
REPLICATED = ("sotd", *ONE_PASS)
METHODS = (*FITS, *REPLICATED, *FAMILY, *ROBUST)
_WIDE_ACTIONS = 1024  # features beyond which LSTDQ, LSETD and SOTD are left out unasked
_NUMBERS = 1 << 22  # features held to look for regions without rows
_REACH = 0.25  # share of effective episodes down to which histories correct a fit


class Plan:
    """The systems behind the methods, fitted in two passes."""

    def __init__(
        self,
        log: Log,
        survey: Survey,
        features: Any,
        methods: list[str] | None,
        trace: float | None,
        lanes: int,
        seed: int,
        confidence: float,
    ) -> None:
        self.log, self.survey, self.seed = log, survey, seed
        self.lanes, self.confidence = lanes, confidence
        self.sample: Episodes = survey.sample.joined()
        self.asked = methods
        self.choice: Chosen = choose(survey, self.sample, features, trace, seed)
        self.remarks = list(self.choice.remarks)
        self.methods = methods or self._fitting_methods()
        self._build()
        self._replicated: dict[str, Replicated] = {}

    # -- what to fit -------------------------------------------------------------------------------

    def _fitting_methods(self) -> list[str]:
        """All methods that this log has what it takes for."""
        rows = self.sample.rows
        left_out = set()
        if rows.observation is not None and not isinstance(self.choice.lead.basis, Cells):
            left_out.add("plugin")
        needed = (rows.target_probs, rows.next_target_probs, rows.action)
        if any(part is None for part in needed) or self._actions() > _WIDE_ACTIONS:
            left_out.add("lstdq")
        if self._size() > _WIDE_ACTIONS:
            left_out |= {"lsetd", "lstdq", "sotd"}
        return [method for method in METHODS if method not in left_out]

    def _size(self) -> int:
        lead = self.choice.lead
        return int(getattr(lead.basis.features, "n_features_out_", None) or self.choice.size)

    def _actions(self) -> int:
        return self._size() * max(self.survey.n_actions, 1)

    def _build(self) -> None:
        """All systems, each with the name of what it serves."""
        lead, states = self.choice.lead, self.choice.states
        self.systems: dict[str, AnySystem] = {}
        if not self.choice.average:
            lead.wanted = self.lanes
            self.systems["lead"] = lead
        for k, member in enumerate(self.choice.panel):
            self.systems[f"panel {k}"] = member
        if "lsetd" in self.methods:
            self.systems["lsetd"] = System(states, lead.trace, emphatic=True, ridge=lead.ridge)
        if "lstdq" in self.methods:
            basis = Actions(states, max(self.survey.n_actions, 1))
            self.systems["lstdq"] = System(basis, ridge=max(lead.ridge, 1e-8))
        plain = isinstance(lead, CellSystem) and self.choice.exact
        if "plugin" in self.methods and not plain and self.choice.tabular is not None:
            self.systems["plugin"] = CellSystem(self.choice.cells(), self.lanes)

    # -- answers -----------------------------------------------------------------------------------

    def cases(self) -> list[Case]:
        """Fit everything and return one case a method."""
        if "lstdq" in self.methods and self.sample.rows.next_target_probs is None:
            self.systems.pop("lstdq", None)
        order = sorted(self.systems, key=lambda name: id(getattr(self.systems[name], "basis", 0)))
        fitting = Fitting([self.systems[name] for name in order], self.lanes, self.seed)
        self.log.collect(fitting)
        self.fits: dict[str, Fit] = dict(zip(order, fitting.fits(), strict=True))
        lead = self.choice.lead
        self.fits.setdefault("lead", next(f for f in self.fits.values() if f.system is lead))
        self._trace(lead)
        wanted = [method for method in self.methods if method in REPLICATED]
        if wanted:
            most = self.survey.most()
            self._replicated = online(self.sample, self.choice.online, wanted, most)
        self.base = self._lstd()
        makers = [self._case(method) for method in self.methods]
        cases = [case for case in makers if case is not None]
        self._look_beyond([self.base, *cases])
        return cases

    def _look_beyond(self, cases: list[Case]) -> None:
        """Tell cases which share of the target's visits is to what no row leaves."""
        ahead, lead = self.survey.ahead(), self.choice.lead
        if isinstance(lead, CellSystem):
            share = lead.unlogged(ahead)
        else:
            width = self.choice.size if self.sample.rows.observation is None else 1
            part = first_episodes(self.sample, min(JUDGED, max(_NUMBERS // width, FEWEST)))
            share = unlogged_regions(part, lead.basis, ahead)
        finer = self.fits.get("plugin")
        for case in cases:
            case.unlogged = share
            if case.method == "plugin" and finer is not None:
                assert isinstance(finer.system, CellSystem)  # noqa: S101
                case.unlogged = finer.system.unlogged(ahead)

    def _trace(self, lead: AnySystem) -> None:
        """The influence of episodes on all that is asked for: the last pass."""
        weighed, weights = self.survey.weighed, across(lead)
        base = float((lead.starts * weights.T).sum() / max(weighed.totals.opened, 1.0))
        methods = tuple(method for method in self.methods if method in (*FAMILY, *ROBUST))
        self.corrected = Corrected(weighed, methods, self._reach(), base)
        alone = [name for name in ("plugin", "lstdq", "lsetd") if name in self.fits]
        blends: dict[str, Blend] = {name: [(1.0, self.fits[name])] for name in alone}
        blends["lstd"] = (
            middle(self._members()) if self.choice.average else [(1.0, self.fits["lead"])]
        )
        self.blends = blends
        found: Influences = self.log.collect(
            Influences.of(
                *(list(blends.values()), lead, weights, self.corrected, self.seed, self.lanes)
            )
        )
        names = (*blends, *self.corrected.names)
        self.influence: dict[str, Spread] = dict(zip(names, found.spreads(), strict=True))

    def _members(self) -> list[Fit]:
        """The fits of the panel that agree with each other."""
        members = [fit for name, fit in self.fits.items() if name.startswith("panel")]
        fine = agreeing(np.array([fit.value for fit in members])) if members else []
        return [fit for fit, one in zip(members, fine, strict=True) if one]

    def _reach(self) -> int:
        size = self.survey.weighed.horizon.effective_size
        enough = size >= max(_REACH * self.survey.episodes, 1.0)
        return int(len(size) if enough.all() else np.argmin(enough))

    def _case(self, method: str) -> Case | None:
        if method == "lstd":
            return self.base
        if method == "plugin":
            return self._plugin()
        if method in ("lstdq", "lsetd"):
            return self._other_fit(method)
        if method in REPLICATED:
            return self._replicate(method)
        influence = self.influence[method]
        value = self.corrected.value(method, influence)
        interval = self._interval(value, value - influence.mean + influence.lanes, influence)
        if method in FAMILY:
            return Case(method, value, interval, 0.0, influence)
        about = {"dr": "doubly robust", "wdr": "weighted doubly robust"}[method]
        about += f", V by LSTD on the other folds: {self.choice.lead.label}"
        # Beyond a truncation no reward corrects V, whose own interval is not in this one either.
        left, base = self.survey.left(), self.base
        approximation = 0.0 if not left else None
        if left and base.approximation is not None:
            approximation = left * (base.approximation + base.half_width)
        condition = base.condition if left else 1.0
        return Case(method, value, interval, approximation, influence, condition, about)

    def _interval(self, value: float, lanes: Floats, influence: Spread) -> Interval:
        if value != 0.0 and influence.count > 1 and influence.error <= ROUNDING * abs(value):
            return self._unvaried(value, influence.error)
        if not self.lanes:
            return sandwich(value, influence, self.confidence)
        return bca(value, lanes, influence, self.confidence)

    def _unvaried(self, value: float, error: float) -> Interval:
        """Where no episode says anything else; those count that the ratios leave."""
        count = min(self.survey.weighed.units, self.survey.weights()["effective_rows"])
        return rule_of_three(value, count, self.confidence, error)

    # -- fits --------------------------------------------------------------------------------------

    def _blended(self, name: str) -> tuple[float, Interval, Spread]:
        """Value, interval and influence of a fit or a mean of fits."""
        blend, influence = self.blends[name], self.influence[name]
        value = float(sum(weight * fit.value for weight, fit in blend))
        own = blend[0][1].lanes if len(blend) == 1 else None
        lanes = value + influence.lanes if own is None else own
        return value, self._interval(value, lanes, influence), influence

    def _lstd(self) -> Case:
        lead = self.fits["lead"]
        members = [fit.value for fit in self._members()]
        value, interval, influence = self._blended("lstd")
        approximation = self._from_states(value)
        about = f"LSTD: {lead.system.label}"
        if members and self.choice.average:
            about = f"LSTD: mean of {len(self.blends['lstd'])} of {len(members)} fits; as model"
            about += f" {lead.system.label}"
            approximation = float(np.ptp(members)) / 2.0
        elif members:
            off = abs(float(np.mean(members)) - value)
            approximation = max(off, float(np.ptp([*members, value])) / 2.0)
        if approximation is not None and not self.choice.exact:
            short = self.influence[SHORT]
            approximation = max(approximation, abs(short.mean) - 2.0 * short.error)
        return Case("lstd", value, interval, approximation, influence, lead.condition, about)

    def _from_states(self, value: float) -> float | None:
        """What coarse features cost where the log has states: the way to one weight a state."""
        if self.choice.exact:
            return 0.0
        finer = self.fits.get("plugin")
        return None if finer is None else abs(finer.value - value)

    def _plugin(self) -> Case | None:
        fit = self.fits.get("plugin") or self.fits["lead"]
        if not isinstance(fit.system, CellSystem):
            return self._missing("plugin", "the log has no states that recur")
        about = f"plug-in model of {fit.system.d} states, normalised by ratios"
        value, interval, influence = self._blended("plugin" if "plugin" in self.fits else "lstd")
        exact = 0.0 if self.choice.exact or "plugin" in self.fits else self.base.approximation
        return Case("plugin", value, interval, exact, influence, fit.condition, about)

    def _other_fit(self, method: str) -> Case:
        fit = self.fits.get(method)
        if fit is None:
            return self._missing(
                method, "the log has no per-action probabilities of the target, now and next"
            )
        value, interval, influence = self._blended(method)
        about = f"{method.upper()}: {fit.system.label}"
        return Case(
            method,
            value,
            interval,
            self._beside(value),
            influence,
            fit.condition,
            about,
            narrow=self.base.half_width,
        )

    def _beside(self, value: float, noise: float = 2.0) -> float | None:
        """An approximation error at least as large as what lies between this and LSTD.

        As far as `noise` standard errors it may be chance; not for a learner, which goes over LSTD's
        own rows and features and differs only in how far it got.
        """
        own = self.base.approximation
        if own is None or not np.isfinite([value, self.base.value]).all():
            return None
        allowed = noise * self.base.interval.standard_error if noise else 0.0
        return max(own, abs(value - self.base.value) - allowed)

    def _replicate(self, method: str) -> Case:
        found = self._replicated[method]
        name = "t, leaving out groups of episodes"
        interval = student(found.value, found.replicates, self.confidence, name)
        if found.value != 0.0 and interval.standard_error <= ROUNDING * abs(found.value):
            interval = self._unvaried(found.value, interval.standard_error)
        about = found.about
        if self.survey.sample.threshold < 1.0:
            about += f", on a sample of {len(self.sample.rows)} rows"
        return Case(
            method,
            found.value,
            interval,
            self._beside(found.value, 0.0 if method in ONE_PASS else 2.0),
            self.base.influence,  # the same rows and features: what they rest on is the same
            1.0,
            about,
            found.trouble,
            narrow=self.base.half_width,
        )

    def _missing(self, method: str, why: str) -> Case:
        none = float("nan")
        blank = Interval(none, none, "none", none)
        return Case(method, none, blank, None, None, 1.0, "", why)

    # -- what else is handed over ------------------------------------------------------------------

    @property
    def chosen(self) -> dict[str, Any]:
        """What features were used and why."""
        return self.choice.account

    def model(self, best: str) -> ValueModel | None:
        """LSTD's value function; if that was not asked for, the recommended one's, or the first's.

        Histories have none: where nothing else was asked for it is LSTD's again.
        """
        first = [best, *self.methods]
        for method in ("lstd", *first) if "lstd" in self.methods else (*first, "lstd"):
            found = self._weights(method)
            if found is not None and np.isfinite(found[0]).all():
                return ValueModel.of(*found, method, self.log.source)
        return None

    def _weights(self, method: str) -> tuple[Floats, Any] | None:
        """What a method has fitted, and the features that its weights are of."""
        if method in self._replicated:
            found = self._replicated[method]
            return None if found.theta is None else (found.theta, found.features)
        fit = self.fits.get("lead" if method == "lstd" else method)
        if method == "plugin" and fit is None and isinstance(self.choice.lead, CellSystem):
            fit = self.fits["lead"]
        if fit is None:
            return None
        theta, basis = fit.solution.theta, fit.system.basis
        if isinstance(basis, Actions):
            return theta.reshape(basis.n_actions, -1), basis.states.features
        if isinstance(fit.system, CellSystem):
            theta = fit.system.table(theta, basis.features.n_features_out_)
        return theta, basis.features

    def series(self) -> dict[str, Any]:
        """Learning curves, the calibration of an estimated behaviour, and the choice of features."""
        curves = {
            name: found.curve for name, found in self._replicated.items() if found.curve is not None
        }
        series: dict[str, Any] = {"curves": curves}
        behavior = self.log.source.behavior_model
        if behavior is not None:
            series["calibration"] = vars(behavior.calibration)
        if "candidates" in self.choice.account:
            listed = self.choice.account["candidates"]
            columns = list(listed[0]) if listed else []
            series["choice"] = {
                "columns": columns,
                "rows": [[row[name] for name in columns] for row in listed],
                "why": self.choice.account["why"],
            }
        series["log"] = str(self.log.source.info).splitlines()
        return series
