"""Runs on a Dask cluster: the same numbers as on one machine, whatever happens to its processes."""

import sys

import pytest

from tests.helpers import numbers, refused, run


def test_a_local_cluster_gives_the_numbers_of_this_machine(small, tmp_path):
    config = small()
    assert run(config, tmp_path / "one").exit_code == 0
    done = run(config, tmp_path / "cluster", "--cluster", "local:2")
    assert done.exit_code == 0, done.output
    assert "2 workers; dashboard: http://" in done.output
    one, other = (numbers(tmp_path / name / "small") for name in ("one", "cluster"))
    assert one.equals(other)
    again = run(config, tmp_path / "cluster", "--cluster", "local:1")
    assert "6 of them done already" in again.output


@pytest.mark.parametrize(
    ("where", "code", "sentence"),
    [
        ("local:0", 2, "expected the address of a scheduler"),
        ("tcp://127.0.0.1:1", 1, "no scheduler answers at tcp://127.0.0.1:1"),
    ],
)
def test_no_such_cluster(small, tmp_path, where, code, sentence):
    waiting = ["--cluster-wait", "0.2"]
    assert sentence in refused(["run", small(), "--cluster", where, *waiting], code)


def test_without_dask_a_sentence_names_what_to_install(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "precbench.runner.cluster", raising=False)
    monkeypatch.delitem(sys.modules, "precbench.runner.remote", raising=False)
    assert "pip install 'precbench[cluster]'" in refused(["run", small(), "--cluster", "local:1"])
