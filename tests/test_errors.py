from __future__ import annotations

from pathlib import Path

import pytest

from o2td import errors


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.InputError, ValueError),
        (errors.NoAnswerError, ValueError),
        (errors.MissingExtraError, ImportError),
        (errors.FormatError, Exception),
    ],
)
def test_every_error_is_ours_and_the_builtin_one(
    error: type[Exception], builtin: type[Exception]
) -> None:
    assert issubclass(error, errors.O2TDError)
    assert issubclass(error, builtin)
    assert str(error("a sentence")) == "a sentence"


def test_every_public_error_is_listed() -> None:
    found = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.O2TDError)
    }
    assert found == set(errors.__all__) - {"import_extra", "option", "spoken_to_the_command_line"}


def test_a_missing_extra_names_the_module_and_the_extra() -> None:
    with pytest.raises(
        errors.MissingExtraError, match=r'"o2td\[logs\]", or "\.\[logs\]"'
    ) as caught:
        errors.import_extra("o2td_has_no_such_module", extra="logs")
    assert caught.value.name == "o2td_has_no_such_module"


def test_a_fault_inside_an_extra_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "o2td_broken_extra.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError):
        errors.import_extra("o2td_broken_extra", extra="logs")
