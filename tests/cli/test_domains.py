from __future__ import annotations

import json
from typing import Any

import pytest

from o2td import domains
from o2td.cli import main
from o2td.errors import MissingExtraError
from o2td.registry import DOMAINS


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["domains"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split()[1:4] for line in lines if line[:1].strip()}
    assert rows["random_mdp"] == ["400", "201", "0.95"]
    assert rows["mountain_car"] == ["continuous", "16", "0.95"]
    assert rows["four_rooms"][0] == "104"
    assert set(rows) >= set(DOMAINS.names())


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["domains", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["domains"]}
    assert set(rows) == set(DOMAINS.names())
    assert rows["baird"] == {
        "name": "baird",
        "summary": (domains.baird.__doc__ or "").split("\n")[0],
        "parameters": {"form": "star", "discount": 0.99},
        "states": 7,
        "actions": 2,
        "features": 8,
        "discount": 0.99,
        "needs": None,
    }
    assert rows["energy_storage"]["states"] is None


def test_domains_that_cannot_be_built_are_listed_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> Any:
        """A domain without its requirement."""
        raise MissingExtraError('nothing is not installed; run pip install "o2td[gymnasium]"')

    def demanding(size: int, seed: int = 0) -> Any:
        """A domain with no default."""

    DOMAINS.names()
    monkeypatch.setattr(DOMAINS, "_members", dict(DOMAINS._members))
    DOMAINS.register("missing", missing)
    DOMAINS.register("demanding", demanding)
    assert main(["domains", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["domains"]}
    assert "o2td[gymnasium]" in rows["missing"]["needs"]
    assert rows["demanding"]["needs"] == "arguments: size"
    assert main(["domains"]) == 0
    assert "default. Needs arguments: size" in " ".join(capsys.readouterr().out.split())
