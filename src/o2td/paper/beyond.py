"""Beyond the paper, exact: lemmas measured, nearness to optimal, stability."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.errors import import_extra
from o2td.experiments.loading import Results
from o2td.paper.charts import draw_lambda, draw_shares, draw_spread
from o2td.report.drawing import Folder
from o2td.report.page import Callout, Details, Picture, Section, Table, Text
from o2td.report.statistics import ValueInterval, median, number, percent, wilson
from o2td.report.style import pretty

if TYPE_CHECKING:
    import polars as pl


_DOMAINS = {
    "boyan_chain": "Boyan chain",
    "collision": "Collision",
    "random_walk": "random walk",
    "random_mdp": "random MDP",
    "four_rooms": "Four Rooms",
}
_QUANTITIES = {
    "lemma 1": "Lemma 1, relative difference",
    "lemma 2": "Lemma 2, relative difference",
    "optimal direction": "ΔᵀX* against C, relative difference",
    "omega fro": "ω by the Frobenius norm, relative difference from the printed formula",
    "omega nuc": "ω by the trace norm, relative difference from the printed formula",
    "stage 1 free dimensions": "SOTD's first stage: free dimensions in each column of X",
    "stage 1 change of answer": "SOTD's first stage: change of θ from another start",
    "stage 2 rank short of d": "SOTD's second stage: missing rank, 20 rows per state",
    "stage 2 rank short of d, few rows": "SOTD's second stage: missing rank, fewer rows than features",
    "share of the bound": "TD's error as a share of its bound",
    "proposition 1": "Proposition 1, standard errors",
    "proposition 1, ratio inside": "Proposition 1 with the ratio inside, standard errors",
    "follow-on": "follow-on trace, standard errors",
}


def nearness(results: Results, folder: Folder) -> Section:
    """Exact error of every method's limit over the least possible."""
    table = results.study("nearness")
    ratios = table.filter(quantity="suboptimality")
    garnets = _by_method(ratios.filter(domain="garnet"))
    folder.table(ratios.filter(domain="garnet"), "nearness")
    problems = ratios.filter(domain="garnet")["index"].n_unique()
    spread = draw_spread(
        folder,
        "nearness",
        f"Every method's limit on {problems} garnets",
        "RMSE of the limit / least possible RMSE (log axis)",
        *_together(garnets),
    )
    curves = _lambda(ratios.filter(domain="garnet by lambda"))
    folder.table(ratios.filter(domain="garnet by lambda"), "nearness-lambda")
    by_lambda = draw_lambda(folder, "nearness-lambda", "From λ = 0 to λ = 1", curves)
    rows = [
        [
            pretty(m),
            str(median(v)),
            number(float(np.quantile(v, 0.95))),
            number(float(v.max())),
            str(len(v)),
        ]
        for m, v in sorted(garnets.items(), key=lambda item: float(np.median(item[1])))
    ]
    columns = ["method", "median [95 %]", "95th percentile", "worst", "problems"]
    return Section("nearness", "How near to optimal").add(
        Text(
            f"With infinitely many rows each method has an exact limit. Here is its RMSE divided by"
            f" that of the best approximation with the same features, on {problems} random off-policy"
            " problems: 1 is optimal. Bars are the middle half, lines 5 % to 95 %, the tick is the"
            " median, the dot the worst problem (an arrow: it lies beyond the axis)."
            " A number behind a name counts further methods with the very same limit. ARCTD has a fixed"
            " λ here, not its growing traces."
        ),
        Picture(
            spread,
            "Distribution of error over the least possible, by method",
            "",
            folder.files("nearness", "png", "svg", "csv"),
            "narrow",
        ),
        Picture(
            by_lambda,
            "Median error over the least possible against lambda",
            "Medians and middle halves over the same problems.",
            folder.files("nearness-lambda", "png", "svg", "csv"),
            "narrow",
        ),
        Details("Numbers, garnets", [Table(columns, rows, "", columns[1:])]),
        Details("Numbers, classic domains", [_classic(ratios)]),
        Details("Worst case over all rewards", [_amplification(table)]),
    )


def _together(rows: dict[str, Floats]) -> tuple[dict[str, Floats], dict[str, str]]:
    """Methods with the same limit on every problem as one row, and how many more it represents."""
    groups: list[list[str]] = []
    for method in sorted(rows, key=lambda name: (len(name), name)):
        for group in groups:
            first = rows[group[0]]
            if len(first) == len(rows[method]) and np.allclose(first, rows[method], rtol=1e-5):
                group.append(method)
                break
        else:
            groups.append([method])
    notes = {group[0]: f" +{len(group) - 1}" for group in groups if len(group) > 1}
    return {group[0]: rows[group[0]] for group in groups}, notes


def _by_method(table: pl.DataFrame) -> dict[str, Floats]:
    return {
        str(method): own["value"].to_numpy()
        for (method,), own in table.group_by(["method"], maintain_order=True)
    }


def _lambda(table: pl.DataFrame) -> dict[str, tuple[Floats, Floats, Floats, Floats]]:
    found = {}
    for (method,), own in table.group_by(["method"], maintain_order=True):
        x = np.sort(own["x"].unique().to_numpy())
        at = np.array(
            [np.quantile(own.filter(x=float(v))["value"].to_numpy(), [0.5, 0.25, 0.75]) for v in x]
        )
        found[str(method)] = (x, at[:, 0], at[:, 1], at[:, 2])
    return found


def _classic(ratios: pl.DataFrame) -> Table:
    polars = import_extra("polars", extra="experiments")
    table = ratios.filter(~polars.col("domain").str.starts_with("garnet"))
    domains = table["domain"].unique(maintain_order=True).to_list()
    rows = []
    for method in table["method"].unique(maintain_order=True).to_list():
        own = table.filter(method=method)
        values = {row["domain"]: row["value"] for row in own.iter_rows(named=True)}
        rows.append([pretty(method), *(number(values.get(d), 4) for d in domains)])
    names = [_DOMAINS.get(domain, domain) for domain in domains]
    return Table(
        ["method", *names],
        sorted(rows),
        "RMSE of the limit over the least possible"
        " (–: the method has no limit there, or the domain lacks what it needs)",
        names,
    )


def _amplification(table: pl.DataFrame) -> Table:
    own = table.filter(domain="garnet", quantity="amplification")
    rows = [
        [pretty(method), str(median(values)), number(float(values.max()))]
        for method, values in _by_method(own).items()
    ]
    columns = ["direction", "median [95 %]", "largest"]
    return Table(
        columns, rows, "Largest possible error over the least, over all rewards", columns[1:]
    )


def stability(results: Results, folder: Folder) -> Section:
    """Shares of random problems on which each learner's mean dynamics is unstable."""
    table = results.study("stability").filter(quantity="unstable")
    folder.table(results.study("stability"), "stability")
    groups: dict[str, dict[str, ValueInterval]] = {}
    for domain in ("off-policy", "on-policy"):
        own = _by_method(table.filter(domain=domain))
        groups[domain] = {m: wilson(int(v.sum()), len(v)) for m, v in own.items()}
    picture = draw_shares(folder, "stability", "Unstable mean dynamics", groups)
    problems = table["index"].n_unique()
    columns = ["method", "off-policy, unstable", "on-policy, unstable"]
    rows = [
        [pretty(m), _share(groups["off-policy"].get(m)), _share(groups["on-policy"].get(m))]
        for m in groups["off-policy"]
    ]
    cycle = results.study("stability").filter(domain="cycle")
    hand = [[pretty(r["method"]), number(r["value"])] for r in cycle.iter_rows(named=True)]
    return Section("stability", "Which learners are stable").add(
        Text(
            f"The share of {problems} random problems (30 states, 5 features, discount 0.99) on which"
            " a learner's expected update has an eigenvalue that drives it away from its fixed"
            " point, whatever the step size. GTD2 with omega emphasis has the same limit as O²TD."
        ),
        Picture(
            picture,
            "Share of unstable problems by method, off- and on-policy",
            "Shares with Wilson's 95 % intervals.",
            folder.files("stability", "png", "svg", "csv"),
            "narrow",
        ),
        Details("Numbers", [Table(columns, rows, "", columns[1:])]),
        Details(
            "A cycle of three states, on-policy",
            [
                Text(
                    "0 → 1 → 2 → 0, discount 0.9, features (−1, 2), (−2, 2), (2, 0): a negative"
                    " least eigenvalue means that the learner runs away."
                ),
                Table(["method", "least eigenvalue of A"], hand, "", ["least eigenvalue of A"]),
            ],
        ),
    )


def _share(share: ValueInterval | None) -> str:
    if share is None:
        return "–"
    return f"{percent(share.value)} [{percent(share.low)}, {percent(share.high)}]"


def theory(results: Results, folder: Folder) -> Section:
    """The lemmas' measurements and the time of a step."""
    section = Section("theory", "Lemmas and cost")
    if results.has("theory"):
        table = results.study("theory")
        folder.table(table, "theory")
        rows = []
        for (quantity,), own in table.group_by(["quantity"], maintain_order=True):
            values = own["value"].to_numpy()
            numbers = (np.median(values), values.min(), values.max())
            name = _QUANTITIES.get(str(quantity), str(quantity))
            rows.append([name, *(number(float(v)) for v in numbers), str(len(values))])
        columns = ["quantity", "median", "least", "largest", "problems"]
        section.add(
            Text(
                "What claims 1 to 7 and 16 rest on. Lemmas: relative difference of the two sides."
                " Proposition and follow-on trace: root mean square of (sampled mean − expectation) /"
                " standard error, which is 1 where they agree."
            ),
            Table(columns, rows, "", columns[1:]),
        )
    if results.has("cost"):
        table = results.study("cost")
        folder.table(table, "cost")
        sizes = sorted(table["x"].unique().to_list())
        rows = [
            [
                pretty(method),
                *(number(float(table.filter(method=method, x=d)["value"][0])) for d in sizes),
            ]
            for method in table["method"].unique(maintain_order=True).to_list()
        ]
        columns = ["method", *(f"d = {int(d)}" for d in sizes)]
        section.add(
            Table(
                columns,
                rows,
                "Nanoseconds of processor time per step, least of many passes on this machine",
                columns[1:],
            ),
            Callout(
                "Times differ between machines and days; they are the one part of this page that does."
            ),
        )
    return section
