"""Beyond the paper: nearness to optimal, bias against variance, stability, published figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from o2td.errors import import_extra
from o2td.report.charts import draw_lambda, draw_shares, draw_spread
from o2td.report.curves import METRICS, Panel, draw_columns, final_rows
from o2td.report.data import Results
from o2td.report.drawing import Folder
from o2td.report.page import Badge, Callout, Cell, Columns, Details, Picture, Section, Table, Text
from o2td.report.statistics import Interval, mean, median, number, percent, wilson
from o2td.report.style import pretty

if TYPE_CHECKING:
    import polars as pl

__all__ = ["discounts", "nearness", "published", "rooms", "stability", "theory", "variance"]

Floats = npt.NDArray[np.float64]

COLLISION = {"TD": 0.326, "ETD": 0.125, "GTD2": 0.343, "TD lambda 0.9": 0.108}
LIMITS = {
    "best": 0.0713,
    "TD": 0.306,
    "TD lambda 0.9": 0.0744,
    "ETD": 0.111,
    "ETD lambda 0.9": 0.0753,
}
BAIRD = {
    ("first weights", "rmse"): 5.318432,
    ("first weights", "rmspbe"): 8.221408,
    ("ETD, weight 1", "theta"): 1.692308,
    ("ETD, weight 7", "theta"): 6.769231,
    ("ETD, weight 8", "theta"): -3.384615,
}
SURVEY_GTD2 = 1.634  # RMSE after 1000 steps, 200 runs


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
        garnets,
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
        ),
        Picture(
            spread,
            "Distribution of error over the least possible, by method",
            "",
            folder.files("nearness", "png", "svg", "csv"),
        ),
        Picture(
            by_lambda,
            "Median error over the least possible against lambda",
            "Medians and middle halves over the same problems.",
            folder.files("nearness-lambda", "png", "svg", "csv"),
            "narrow",
        ),
        Details("Numbers, garnets", [Table(columns, rows, "", columns[1:])]),
        _classic(ratios),
        Details("Worst case over all rewards", [_amplification(table)]),
    )


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
    names = [domain.replace("_", " ") for domain in domains]
    return Table(
        ["method", *names],
        sorted(rows),
        "Classic domains: RMSE of the limit over the least possible"
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
    groups: dict[str, dict[str, Interval]] = {}
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


def _share(share: Interval | None) -> str:
    if share is None:
        return "–"
    return f"{percent(share.value)} [{percent(share.low)}, {percent(share.high)}]"


def variance(results: Results, folder: Folder) -> Section:
    """RMSE against samples where policies really differ: online and batch."""
    panels, tables = [], []
    for name, way, title, x in (
        ("more-variance", "tuned", "Online, tuned step sizes", "step"),
        ("more-variance-batch", "shown", "Batch", "n"),
    ):
        if results.has(name):
            table = results.curves(name, way)
            panels.append(Panel(title, table, x))
            folder.table(table, name)
            columns = ["method", "step sizes", METRICS["rmse"], "diverged runs"]
            tables.append(
                Table(columns, final_rows(panels[-1]), f"{title}: error at the end", columns[2:])
            )
    pictures = draw_columns(folder, "variance", panels, log_x=True)
    about = results.about("more-variance")
    return Section("variance", "Bias against variance").add(
        Text(
            f"Garnets whose policies really differ, one a run, {about['runs']} runs. A method with a"
            " good limit may need many rows to come near it; learners are tuned for their error at"
            " the end."
        ),
        Columns(
            [
                Picture(
                    data,
                    f"RMSE against rows, {panel.title}",
                    "",
                    folder.files("variance", "png", "svg"),
                )
                for data, panel in zip(pictures, panels, strict=True)
            ]
        ),
        Details("Numbers", tables),
    )


def published(results: Results, folder: Folder) -> Section:
    """Our numbers beside those that others have published."""
    section = Section("published", "Beside figures published by others")
    section.add(
        Text(
            "Each of our numbers with its 95 % interval, beside the published one. They agree if the"
            " difference is within twice the interval's half width (theirs has its own spread), or,"
            " for exact figures, within the digits printed."
        )
    )
    if results.has("more-collision"):
        section.add(_collision(results, folder))
    rows: list[list[Cell]] = []
    if results.has("published"):
        table = results.study("published")
        folder.table(table, "published")
        for method, figure in LIMITS.items():
            ours = mean(table.filter(domain="collision", method=method)["value"].to_numpy())
            rows.append(_beside(f"Collision, limit of {pretty(method)}, exact RMSE", ours, figure))
        for (method, quantity), figure in BAIRD.items():
            value = float(
                table.filter(domain="baird", method=method, quantity=quantity)["value"][0]
            )
            ours = Interval(value, value - 1e-6, value + 1e-6)
            rows.append(_beside(f"Baird star, {method}, {quantity}", ours, figure, 7))
    if results.has("fig-baird"):
        runs = results.runs("fig-baird")
        own = runs.filter(algorithm="GTD2", metric="rmse", step=1000)
        survey = own.filter(
            import_extra("polars", "experiments").col("domain").str.contains("survey")
        )
        if len(survey):
            ours = mean(survey["value"].to_numpy())
            rows.append(
                _beside("Baird survey form, GTD2, RMSE after 1000 steps", ours, SURVEY_GTD2)
            )
    columns = ["what", "here", "published", "agrees"]
    if rows:
        section.add(Table(columns, rows, "Other published figures", columns[1:3], stack=True))
    return section


def _collision(results: Results, folder: Folder) -> Table:
    scores = results.scores("more-collision", "shown", "area").filter(metric="rmse")
    folder.table(results.curves("more-collision"), "more-collision")
    rows: list[list[Cell]] = []
    for method in scores["algorithm"].unique(maintain_order=True).to_list():
        ours = mean(scores.filter(algorithm=method)["value"].to_numpy())
        if method in COLLISION:
            rows.append(_beside(pretty(method), ours, COLLISION[method]))
        else:
            rows.append([pretty(method), str(ours), "–", "not published"])
    about = results.about("more-collision")
    columns = ["method", "here", "published", "agrees"]
    return Table(
        columns,
        rows,
        f"Collision: RMSE, mean over a run of {about['steps']} steps and over"
        f" {about['runs']} runs, published step sizes",
        columns[1:3],
        stack=True,
    )


def _beside(what: str, ours: Interval, figure: float, digits: int = 3) -> list[Cell]:
    agrees = abs(ours.value - figure) <= 2.0 * (ours.high - ours.value)
    exact = digits > 3
    shown = number(ours.value, digits) if exact else str(ours)
    return [
        what,
        shown,
        number(figure, digits),
        Badge("yes", "good") if agrees else Badge("no", "bad"),
    ]


def rooms(results: Results, folder: Folder) -> Section:
    """Four Rooms: the eight predictions together."""
    polars = import_extra("polars", extra="experiments")
    runs, about = results.runs("more-rooms"), results.about("more-rooms")
    keys = ["algorithm", "parameters", "metric", "step", "run"]
    together = runs.group_by(keys, maintain_order=True).agg(
        polars.col("value").mean(), polars.col("diverged").min()
    )
    rows = []
    for key, own in together.group_by(keys[:-1], maintain_order=True):
        error = mean(own["value"].to_numpy())
        gone = own["diverged"].drop_nulls()
        rows.append(
            {
                **dict(zip(keys[:-1], key, strict=True)),
                "runs": len(own),
                "mean": error.value,
                "low": error.low,
                "high": error.high,
                "diverged_runs": len(gone),
                "first_diverged": gone.min() if len(gone) else None,
            }
        )
    table = polars.DataFrame(rows)
    folder.table(table, "rooms")
    panel = Panel("Mean over the eight predictions", table)
    (picture,) = draw_columns(folder, "rooms", [panel])
    columns = ["method", "step sizes", METRICS["rmse"], "diverged runs"]
    return Section("rooms", "Four Rooms").add(
        Text(
            f"Eight predictions in the four rooms, {about['runs']} runs of {about['steps']} steps,"
            f" seed {about['seed']}; the error is the mean over the eight. Bands are 95 % intervals"
            " over runs."
        ),
        Picture(
            picture, "RMSE along the run", "", folder.files("rooms", "png", "svg", "csv"), "narrow"
        ),
        Details("Numbers", [Table(columns, final_rows(panel), "Error at the end", columns[2:])]),
    )


def discounts(results: Results, folder: Folder) -> Section:
    """Mountain car at four discounts, the printed step sizes."""
    table, about = results.totals("more-car", "shown", "area"), results.about("more-car")
    folder.table(table, "more-car")
    algorithms = table["algorithm"].unique(maintain_order=True).to_list()
    rows = []
    for domain in table["domain"].unique(maintain_order=True).to_list():
        discount = domain.partition("discount=")[2].partition(",")[0].rstrip(")")
        for metric in ("rmse", "rmspbe"):
            cells = [discount, METRICS[metric]]
            for algorithm in algorithms:
                row = table.filter(domain=domain, metric=metric, algorithm=algorithm).row(
                    0, named=True
                )
                gone = (
                    f", {percent(row['diverged_share'])} diverged" if row["diverged_share"] else ""
                )
                cells.append(
                    f"{number(row['mean'])} [{number(row['low'])}, {number(row['high'])}]{gone}"
                )
            rows.append(cells)
    columns = ["discount", "error", *(pretty(a) for a in algorithms)]
    return Section("more-car", "Mountain car at other discounts").add(
        Text(
            f"The paper does not print its discount. The printed step sizes at four of them,"
            f" {about['runs']} runs of {about['steps']} steps: mean error over the run."
        ),
        Table(columns, rows, "Mean and 95 % interval over finite runs", columns[2:]),
    )


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
            rows.append([str(quantity), *(number(float(v)) for v in numbers), str(len(values))])
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
                "Nanoseconds a step, least of seven passes on this machine",
                columns[1:],
            ),
            Callout(
                "Times differ between machines and days; they are the one part of this page that does."
            ),
        )
    return section
