"""`o2td bench` outside of a source tree."""

from __future__ import annotations

from o2td.cli import main


def test_an_installed_package_says_where_the_benchmark_is(tmp_path, monkeypatch, capsys):
    from o2td.cli import bench

    assert bench._find(bench._ROOT) is bench.command
    monkeypatch.setattr(bench, "command", bench._find(tmp_path))
    assert main(["bench", "--quick", "--json"]) == 2
    assert "source tree and run make bench" in capsys.readouterr().err
