"""A config that extends another uses the trials that the other has finished."""

import pandas as pd
import pytest

from tests.helpers import numbers, records, run

pytestmark = pytest.mark.usefixtures("in_this_process")

CHILD = """\
extends: small.yaml
name: child
solvers: {cutting-plane: , sgd-avg: {eta0: 0.5}}
"""
REUSED = "2 finished trials of small, which this config extends, are its own as well"


@pytest.fixture
def child(small, tmp_path):
    """A config that extends one which has been run."""
    base = small()
    path = base.with_name("child.yaml")
    path.write_text(CHILD)
    assert run(base, tmp_path / "out", "--no-plots").exit_code == 0
    return path


def test_a_dry_run_says_what_is_finished_and_copies_nothing(child, tmp_path):
    done = run(child, tmp_path / "out", "--dry-run")
    assert REUSED in done.output
    assert "split 0 sgd-avg" in done.output
    assert "split 0 perceptron-avg" not in done.output
    assert not (tmp_path / "out" / "child").exists()


def test_finished_trials_are_not_trained_again(child, tmp_path):
    out = tmp_path / "out"
    before = records(out / "small")
    done = run(child, out, "--no-plots")
    assert done.exit_code == 0
    assert REUSED in done.output
    assert "4 trials, 2 of them done already" in done.output
    assert records(out / "small") == before
    again = run(child, out, "--no-plots")
    assert REUSED not in again.output
    assert "4 trials, 4 of them done already" in again.output


def test_the_numbers_are_those_of_a_run_of_its_own(child, tmp_path):
    run(child, tmp_path / "out", "--no-plots")
    alone = run(child, tmp_path / "alone", "--no-plots")
    assert "which this config extends" not in alone.output
    pd.testing.assert_frame_equal(
        numbers(tmp_path / "out" / "child"), numbers(tmp_path / "alone" / "child")
    )
