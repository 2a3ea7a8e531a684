"""The cases of an experiment: combinations of domain parameters and sampling scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import polars as pl

_SCHEMES = {"sequential": "rows in order", "iid": "rows shuffled"}


class LabelledCase(NamedTuple):
    """A case, with what distinguishes it in titles (`, …`) and in file names (`-…`)."""

    domain: str
    scheme: str
    words: str
    suffix: str

    def of(self, table: pl.DataFrame) -> pl.DataFrame:
        """The rows of this case."""
        return table.filter(domain=self.domain, scheme=self.scheme)


def cases_of(table: pl.DataFrame) -> list[LabelledCase]:
    """All cases of a table, in its order.

    >>> import polars as pl
    >>> domains = ["baird(form=star)", "baird(form=survey)"]
    >>> table = pl.DataFrame({"domain": domains, "scheme": ["iid", "iid"]})
    >>> [(case.words, case.suffix) for case in cases_of(table)]
    [(', star form', '-star'), (', survey form', '-survey')]
    """
    pairs = [
        tuple(row) for row in table.select("domain", "scheme").unique(maintain_order=True).rows()
    ]
    domains, schemes = ({pair[k] for pair in pairs} for k in (0, 1))
    shared = set.intersection(*(set(_parameters(domain)) for domain in domains))
    found = []
    for domain, scheme in pairs:
        own = [p for p in _parameters(domain) if p not in shared] if len(domains) > 1 else []
        words = [_words(parameter) for parameter in own]
        words += [_SCHEMES.get(scheme, scheme)] if len(schemes) > 1 else []
        parts = [parameter.rpartition("=")[2] for parameter in own]
        parts += [scheme] if len(schemes) > 1 else []
        suffix = "".join(f"-{_plain(part)}" for part in parts)
        found.append(LabelledCase(domain, scheme, "".join(f", {word}" for word in words), suffix))
    return found


def _parameters(domain: str) -> list[str]:
    """`["form=star"]` of `baird(form=star)`."""
    inside = domain.partition("(")[2].removesuffix(")")
    return inside.split(", ") if inside else []


def _words(parameter: str) -> str:
    name, _, value = parameter.partition("=")
    words = name.replace("_", " ")
    counted = name == "form" or (value.isdigit() and words.endswith("s"))
    return f"{value} {words}" if counted else f"{words} {value}"


def _plain(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text)
