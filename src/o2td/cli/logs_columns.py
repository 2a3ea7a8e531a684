"""`--columns` as written on the command line, and the library's advice in the command's words."""

from __future__ import annotations

import re
from typing import Any

from o2td.errors import InputError

__all__ = ["in_words_of_the_command", "parse_columns"]

# The library says what to pass in Python; who typed a command gets its option.
_WORDS = (
    ("pass sort=True (--sort on the command line)", "pass --sort"),
    ("pass sort=True", "pass --sort"),
    ('or pass target=policy, or target="behavior" to', "or pass --on-policy to"),
    ('pass columns={"terminated": False}', "pass --columns terminated=never"),
    ("discount: pass it, such as discount=0.99", "discount: pass it, such as --discount 0.99"),
    ("both give it; leave one of them out", "both give it; leave out --discount or the column"),
    ("densities=True", "--densities"),
    ("features: a number is missing", "features: write numbers, as in fourier:3 or tiles:8x8"),
    ("too large for one feature a state", "too large for one feature a state; number them from 0"),
)
_SUBJECTS = {
    "logs": "{file}: ",
    "lanes": "--bootstrap: ",
    "features": "--features {features}: ",
    "state": "{file}: state ",
}
_NEEDS_OBSERVATIONS = (
    "needs columns of observations, and the log gives states; use --features tabular, or say that"
    " the column is one, --columns observation=NAME"
)
_ROLE = re.compile(r"""columns=\{['"](\w+)['"]: …\}""")


def in_words_of_the_command(sentence: str, file: str = "logs", features: str = "auto") -> str:
    """The same sentence with options instead of arguments, about `file` where it says `logs`.

    >>> in_words_of_the_command("a.csv: column step, row 3 is 1 after 2; pass sort=True")
    'a.csv: column step, row 3 is 1 after 2; pass --sort'
    >>> in_words_of_the_command("lanes: 5; pass 0 (no bootstrap) or at least 20")
    '--bootstrap: 5; pass 0 (no bootstrap) or at least 20'
    """
    for python, command in _WORDS:
        sentence = sentence.replace(python, command)
    if "use x[:, None]" in sentence:
        return f"--features {features}: {_NEEDS_OBSERVATIONS}"
    for subject, said in _SUBJECTS.items():
        if sentence.startswith(f"{subject}: "):
            rest = sentence.removeprefix(f"{subject}: ")
            return said.format(file=file, features=features) + _ROLE.sub(r"--columns \1=…", rest)
    return _ROLE.sub(r"--columns \1=…", sentence)


def parse_columns(given: list[str]) -> dict[str, Any]:
    """Roles and columns from `ROLE=NAME`, `ROLE=NAME,NAME`, `FLAG=never` (or `false`) and TOML files.

    >>> parse_columns(["reward=profit", "observation=price,charge", "terminated=never"])
    {'reward': 'profit', 'observation': ['price', 'charge'], 'terminated': False}
    """
    from o2td.sources.columns import SYNONYMS, Columns

    found: dict[str, Any] = {}
    for text in given:
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
        else:
            found[role] = _names(role, name)
    return found


def _names(role: str, text: str) -> str | bool | list[str]:
    from o2td.sources.columns import LISTS, says_never

    if role in ("terminated", "truncated") and says_never(text):
        return False
    names = [name.strip() for name in text.split(",")]
    if len(names) > 1 or (role in LISTS and not text.endswith("*")):
        return names
    return text
