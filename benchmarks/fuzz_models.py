"""Fuzz the readers of models: forged bytes, and forged arrays in valid files, are refused or usable.

Both kinds carry a correct digest, since a digest is not a signature. A model that is accepted must then
predict, learn and save with no errors but typed ones; compiled code must stay within its arrays.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.fuzz_common import fuzz, seeds

with seeds("o2td.archive", "o2td.learners", "o2td.solvers", "zipfile") as atheris:
    import numpy as np

    import o2td
    from o2td import archive
    from o2td.checks.data import stream
    from o2td.errors import O2TDError
    from o2td.learners.base import Learner
    from o2td.registry import LEARNERS, SOLVERS
    from o2td.transitions import Transitions

FILE = Path(tempfile.mkdtemp()) / "model.npz"


def made(kind: Any) -> Any:
    try:
        return kind()
    except TypeError:
        return kind(step_size=0.01)


def rows(width: int = 5) -> Any:
    fields = stream(n=40, weights=True)
    fields["table"] = np.resize(fields["table"], (len(fields["table"]), width))
    return Transitions.from_table(**fields)


def saved() -> dict[str, bytes]:
    """One file of every learner and solver that has seen rows."""
    found = {}
    for name in [*LEARNERS.names(), *SOLVERS.names()]:
        kind = (LEARNERS if name in LEARNERS else SOLVERS)[name]
        model = made(kind)
        try:
            (model.partial_fit if hasattr(model, "partial_fit") else model.update)(rows())
        except O2TDError:
            continue
        model.save(FILE)
        found[name] = FILE.read_bytes()
    for reading in ("state", "moments"):
        model = o2td.O2TD(step_size=0.01, omega=reading, trace=0.5).partial_fit(rows())
        model.save(FILE)
        found[f"O2TD {reading}"] = FILE.read_bytes()
    return found


MODELS = saved()
NAMES = sorted(MODELS)


def corpus() -> list[bytes]:
    bytewise = [b"\0" + data[:-64] for data in MODELS.values()]
    return bytewise + [bytes([1, k, *range(40)]) for k in range(len(NAMES))]


def read(data: bytes) -> None:
    if not data:
        return
    if data[0] % 2 == 0:
        body = data[1:]
        FILE.write_bytes(body + hashlib.sha256(body).hexdigest().encode())
        kinds = [Learner, *(SOLVERS[name] for name in SOLVERS.names())]
    else:
        kinds = forged(atheris.FuzzedDataProvider(data[1:]))
    for kind in kinds:
        with contextlib.suppress(O2TDError):
            use(kind.load(FILE))


def forged(given: Any) -> list[Any]:
    """Change the arrays or the header of a valid file."""
    name = NAMES[given.ConsumeIntInRange(0, len(NAMES) - 1)]
    solver = None if name.partition(" ")[0] in LEARNERS else SOLVERS[name]
    kind = "learner" if solver is None else f"solver {solver.__name__}"
    FILE.write_bytes(MODELS[name])
    header, arrays = archive.load(FILE, kind)
    for _ in range(given.ConsumeIntInRange(1, 3)):
        key = sorted(arrays)[given.ConsumeIntInRange(0, len(arrays) - 1)]
        arrays[key] = bent(given, arrays[key])
        if given.ConsumeBool() and len(arrays) > 1:
            del arrays[sorted(arrays)[given.ConsumeIntInRange(0, len(arrays) - 1)]]
        if given.ConsumeBool():
            own = header.get("parameters") or {"none": None}
            field = sorted(own)[given.ConsumeIntInRange(0, len(own) - 1)]
            own[field] = given.PickValueInList(
                [None, -1, 1e308, "x", [], {}, {"emphasis": "Omega"}, True, 0.5]
            )
    archive.save(FILE, kind, header, arrays)
    return [Learner if solver is None else solver]


def bent(given: Any, array: Any) -> Any:
    how = given.ConsumeIntInRange(0, 5)
    if how == 0:
        return array[: len(array) // 2] if array.ndim else array
    if how == 1:
        return np.resize(array, tuple(given.ConsumeIntInRange(0, 9) for _ in range(array.ndim)))
    if how == 2:
        kinds = ["<i4", "<f4", "<f8", "<i8", "|b1", "<u1"]
        with np.errstate(all="ignore"):
            return array.astype(given.PickValueInList(kinds))
    if how == 3 and array.size:
        changed = array.copy()
        special = [0, -1, 1, 2**31 - 1, -(2**31)]
        if array.dtype.kind == "f":
            special += [np.nan, np.inf, -np.inf, 1e308, 5e-324]
        at = given.ConsumeIntInRange(0, array.size - 1)
        changed.ravel()[at] = given.PickValueInList(special)
        return changed
    return array.reshape(-1) if how == 4 else array[None]


def use(model: Any) -> None:
    """Whatever was accepted must work as a model."""
    for width in {5, len(model.theta) if len(model.theta) < 50 else 5}:
        batch = rows(max(width, 1))
        for act in (
            lambda batch=batch: model.predict(batch.phi),
            lambda batch=batch: getattr(model, "partial_fit", getattr(model, "update", None))(
                batch
            ),
            lambda: model.theta,
            lambda: model.save(FILE),
        ):
            with contextlib.suppress(O2TDError):
                act()


if __name__ == "__main__":
    fuzz(atheris, read, corpus(), sys.argv, most=20_000)
