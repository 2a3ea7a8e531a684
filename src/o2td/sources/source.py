"""What every source of logged data offers: chunks, transitions for a feature map, a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from o2td.arguments import answer_of, as_float, function, instance, shown, whole
from o2td.errors import InputError, option
from o2td.sources.behavior import BehaviorModel, fit_behavior_model
from o2td.sources.coding import Codings
from o2td.sources.decode import Decoded
from o2td.sources.info import LogInfo
from o2td.sources.log_rows import LogRows
from o2td.sources.mapping import Mapped
from o2td.sources.places import Where
from o2td.sources.ratio import RatioRule
from o2td.sources.stream import Stream, Tally
from o2td.sources.values import OwnValues
from o2td.sparse import as_csr
from o2td.transitions import Transitions

ROWS = 65_536  # rows of a chunk
BATCH = 8_192  # rows of a batch of transitions
Watch = Callable[[LogRows | None], None]


class Source:
    """A stream of logged transitions that can be read repeatedly.

    Made by `open_logs`, `rollouts` and `minari`.
    """

    def __init__(self, ratio: RatioRule, discount: float | None) -> None:
        instance("ratio", ratio, RatioRule, "the ratios of a log's columns")
        if ratio.mapped.bandit and discount is None:
            discount = 0.0  # nothing follows a decision
        if discount is None and ratio.mapped.one("discount") is None:
            raise InputError(
                f"discount: pass it, such as {option('discount=0.99', '--discount 0.99')}"
            )
        column = ratio.mapped.one("discount")
        if discount is not None and column is not None:
            raise InputError(
                f"discount: {discount} and column {column} both give it; leave out"
                f" {option('one of them', '--discount or the column')}"
            )
        self.discount = None if discount is None else as_float(discount)
        if self.discount is not None and not 0.0 <= self.discount <= 1.0:
            raise InputError(f"discount: {shown(discount)} is not in [0, 1]; pass one such as 0.99")
        self.mapped: Mapped = ratio.mapped
        self._ratio = ratio
        self._tally: Tally | None = None
        self._watch: Watch | None = None
        self._horizon: int | None = None

    # -- what a kind of source adds ----------------------------------------------------------------

    def _decoded(self, rows: int) -> Iterator[tuple[Where, Decoded]]:
        raise NotImplementedError

    def _files(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _unverified(self) -> tuple[str, ...]:
        return ()

    def _remarks(self) -> tuple[str, ...]:
        return ()

    @property
    def codings(self) -> Codings:
        """How columns that are not numbers are read, by their names."""
        return {}

    # -- for everybody -----------------------------------------------------------------------------

    def chunks(self, rows: int = ROWS) -> Iterator[LogRows]:
        """The log in order, in chunks of at most `rows` rows; the size does not change the rows."""
        self._know_behavior()
        return self._pass(self._ratio, rows)

    def _know_behavior(self) -> None:
        """Estimate the behaviour policy from the log if it is not given."""
        if self._ratio.estimate and self._ratio.behavior is None:
            self._ratio.behavior = fit_behavior_model(self)

    def unweighted_chunks(self, rows: int = ROWS) -> Iterator[LogRows]:
        """The same rows with ratio 1, which need no probabilities."""
        return self._pass(RatioRule(self.mapped, target="behavior"), rows)

    def _pass(
        self, ratio: RatioRule, rows: int, decoded: Iterator[tuple[Where, Decoded]] | None = None
    ) -> Iterator[LogRows]:
        if rows < 1:
            raise InputError(f"rows: {rows}; a chunk has at least 1 row")
        tally = Tally()
        stream = Stream(self.discount, ratio, tally, rows, self._horizon)
        watch = self._watch if ratio is self._ratio else None
        for chunk in stream.chunks(self._decoded(rows) if decoded is None else decoded):
            if watch is not None:
                watch(chunk)
            yield chunk
        stream.account()
        self._check_some(tally)
        if ratio is self._ratio:
            self._tally = tally
        if watch is not None:
            watch(None)

    @contextmanager
    def watched(self, watch: Watch) -> Iterator[None]:
        """Within this block, call `watch` with everything `chunks` yields, and None at the end.

        >>> import pandas as pd
        >>> from o2td import sources
        >>> log = pd.DataFrame({"episode": 0, "obs_0": [0.0, 1.0], "reward": 1.0,
        ...                     "terminated": [False, True], "rho": 1.0})
        >>> source = sources.open_logs(log, discount=0.9)
        >>> with source.watched(lambda rows: print("end" if rows is None else len(rows))):
        ...     _ = source.scan()
        2
        end
        """
        before, self._watch = self._watch, watch
        try:
            yield
        finally:
            self._watch = before

    @contextmanager
    def until(self, horizon: int | None) -> Iterator[None]:
        """Within this block, nothing after the first `horizon` steps of an episode is asked for.

        So the row of the last of these steps needs no successor.

        >>> import pandas as pd
        >>> from o2td import sources
        >>> log = pd.DataFrame({"episode": 0, "obs_0": [0.0, 1.0], "reward": 1.0,
        ...                     "terminated": False, "rho": 1.0})
        >>> source = sources.open_logs(log, discount=0.9)
        >>> with source.until(2):
        ...     source.scan().transitions
        2
        >>> source.scan().transitions
        1
        """
        before, self._horizon = self._horizon, horizon
        try:
            yield
        finally:
            self._horizon = before

    def _check_some(self, tally: Tally) -> None:
        """Raise if no rows of the log are left."""
        if tally.transitions or not tally.rows:
            return
        why = ", ".join(f"{reason}: {count}" for reason, count in tally.dropped.items())
        raise InputError(
            f"{self._files()[0]}: no transition remains of {tally.rows} rows ({why}); add the rows"
            " after them, or columns next_obs_0 … or next_state, or mark the ends as terminated"
        )

    def scan(self) -> LogInfo:
        """Read the whole log once, checking everything, and return a summary."""
        for _ in self.chunks():
            pass
        return self.info

    @property
    def info(self) -> LogInfo:
        """Mapping, files and how ratios are obtained; also counts after a complete pass."""
        tally = self._tally or Tally()
        unverified = self._unverified()
        return LogInfo(
            files=self._files(),
            mapping=dict(self.mapped.roles),
            ratio=str(self._ratio),
            verified=not unverified,
            unverified=unverified,
            complete=self._tally is not None,
            rows=tally.rows,
            transitions=tally.transitions,
            episodes=tally.episodes,
            dropped=dict(tally.dropped),
            notes=dict(tally.notes),
            remarks=self._remarks(),
            codings=dict(self.codings),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was assumed about the target that nothing in the log can confirm."""
        return ()

    @property
    def own_values(self) -> OwnValues | None:
        """The value function of the user's, if a model or columns give one."""
        return self._ratio.values

    @property
    def behavior_model(self) -> BehaviorModel | None:
        """The model that gives the behaviour's probabilities, if one does."""
        model = self._ratio.behavior
        return model if isinstance(model, BehaviorModel) else None

    def batches(self, features: Any, rows: int = BATCH) -> Iterator[Transitions]:
        """The whole log as transitions under a fitted feature map, for `update` and `partial_fit`.

        Batches of the default size stay in the processor's cache while a solver reads them.

        >>> import pandas as pd
        >>> from o2td import LSTD, features, sources
        >>> log = pd.DataFrame({"episode": 0, "obs_0": [0.0, 0.5, 1.0], "reward": 1.0,
        ...                     "terminated": [False, False, True], "rho": 1.0})
        >>> phi, solver = features.Fourier(2, bounds=[(0, 1)]).fit(), LSTD()
        >>> for batch in sources.open_logs(log, discount=1.0).batches(phi):
        ...     _ = solver.update(batch)
        >>> solver.predict(phi.transform([[0.0]])).round(6)
        array([3.])
        """
        rows = whole("rows", rows, 1)
        for chunk in self.chunks():
            for low in range(0, len(chunk), rows):
                yield self.transitions(features, chunk.take(slice(low, low + rows)))

    def transitions(self, features: Any, chunk: LogRows) -> Transitions:
        """Transitions of a chunk under a fitted feature map.

        Parameters
        ----------
        features
            A transformer (`transform`, or `state_of` if one feature is active), a callable on rows
            of observations, or an (S, d) array of the features of each state.
        chunk
            One of this source's chunks.
        """
        behavior = instance("chunk", chunk, LogRows, "one of this source's chunks").behavior_prob
        shared: dict[str, Any] = {
            "discount": chunk.discount,
            "rho": chunk.rho,
            "start": chunk.start,
            "target_prob": chunk.target_prob,
            # Where both probabilities are 0 no method reads the behaviour's.
            "behavior_prob": None if behavior is None else np.maximum(behavior, 1e-300),
        }
        if hasattr(features, "state_of"):
            from scipy.sparse import eye_array

            state = features.state_of(chunk.input)
            table = eye_array(features.n_features_out_, format="csr")
            following = np.where(chunk.terminated, -1, features.state_of(chunk.next_input))
            return Transitions.from_table(table, state, chunk.reward, following, **shared)
        if hasattr(features, "shape"):
            if chunk.state is None or chunk.next_state is None:
                raise InputError("features: a table of features needs a log with states")
            return Transitions.from_table(
                features, chunk.state, chunk.reward, chunk.next_state, **shared
            )
        given = function("features", getattr(features, "transform", features), _MAPS)

        def transform(rows: Any) -> Any:
            found = answer_of("features", given, rows)
            if not hasattr(found, "shape"):
                raise InputError(f"features must give an (n, d) array, got {shown(found)}")
            return as_csr("features", found) if hasattr(found, "tocsr") else found

        phi, next_phi = _both(transform, chunk)
        return Transitions(
            *(phi, chunk.reward, next_phi),
            **shared,
            state=chunk.state,
            next_state=chunk.next_state,
        )


_MAPS = "a transformer, a function of observations, or an (S, d) table"


def _both(transform: Any, chunk: LogRows) -> tuple[Any, Any]:
    """Features and next features; a successor that is the next row is not computed twice."""
    here, after = chunk.input, chunk.next_input
    n = len(here)
    other = chunk.elsewhere()
    if here.ndim == 2 and n and not (other < n - 1).any():
        # Every successor but the last one's is the row below: both are views of one matrix.
        rows = transform(np.concatenate([here, after[-1:]]))
        return rows[:-1], rows[1:]
    phi = transform(here)
    if isinstance(phi, np.ndarray):
        # Almost all successors are the row below: one copy of them all, then the others.
        next_phi = np.roll(phi, -1, axis=0)
        next_phi[chunk.terminated] = phi[chunk.terminated]
        if len(other):
            next_phi[other] = transform(after[other])
        return phi, next_phi
    from scipy.sparse import vstack

    index = np.minimum(np.arange(1, n + 1), n - 1)
    index[chunk.terminated] = np.flatnonzero(chunk.terminated)
    if not len(other):
        return phi, phi[index]
    index[other] = n + np.arange(len(other))
    return phi, vstack([phi, transform(after[other])], format="csr")[index]
