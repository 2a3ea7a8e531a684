"""`--columns` as written on the command line."""

from __future__ import annotations

import re
from typing import Any

from o2td.errors import InputError


def parse_columns(given: list[str]) -> dict[str, Any]:
    """Roles and columns from `ROLE=NAME`, `ROLE=NAME,NAME`, `FLAG=never` (or `false`) and TOML files.

    One text may hold several roles, separated by commas.

    >>> parse_columns(["reward=profit,observation=price,charge", "terminated=never"])
    {'reward': 'profit', 'observation': ['price', 'charge'], 'terminated': False}
    """
    from o2td.sources.columns import LISTS, SYNONYMS, Columns

    found: dict[str, Any] = {}
    between = re.compile(rf",(?=\s*(?:{'|'.join(SYNONYMS).replace('_', '[-_]')})\s*=)")
    for text in (part for one in given for part in between.split(one)):
        role, equals, name = text.partition("=")
        role = role.strip().replace("-", "_")
        if not equals and text.lower().endswith(".toml"):
            file = Columns.make(text)
            found |= {r: v for r in SYNONYMS if (v := getattr(file, r)) is not None}
        elif not equals or role not in SYNONYMS:
            raise InputError(
                f"--columns {text}: write ROLE=NAME or a TOML file; the roles are"
                f" {', '.join(SYNONYMS)}"
            )
        elif not name.strip():
            raise InputError(f"--columns {text}: the name of the column is missing")
        elif "," in name and role not in (*LISTS, "action"):
            raise InputError(
                f"--columns {text}: {role} is one column; for several use --columns more than once"
            )
        else:
            found[role] = _names(role, name)
    return found


def _names(role: str, text: str) -> str | bool | list[str]:
    from o2td.sources.columns import LISTS, says_never

    if role in ("terminated", "truncated") and says_never(text):
        return False
    if "," in text or (role in LISTS and not text.endswith("*")):
        return [name.strip() for name in text.split(",")]
    return text
