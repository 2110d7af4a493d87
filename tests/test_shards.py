"""Shards of an experiment, and results of several folders put together."""

import json
import os
import random
import shutil
from collections import Counter

import pytest

from precbench.errors import InputError
from precbench.experiment.plan import Plan
from precbench.experiment.shard import Shard
from precbench.store import Store, key_of
from tests.helpers import (
    invoke,
    numbers,
    records,
    run,
    shipped_config,
    succeed,
)
from tests.sentences import done_already, raises, refused, tells

pytestmark = pytest.mark.usefixtures("in_this_process")

SOLVERS = "{sgd-avg: , perceptron-avg: }"


def merge(*arguments, code=0):
    result = invoke("merge", *arguments, "--no-plots")
    assert result.exit_code == code, result.output
    return result.stdout


def plan_of(name):
    """Return a plan whose keys are hashes of the places of the trials, without any data."""
    experiment = shipped_config(name)
    trials = [(trial, key_of({"title": trial.title})) for trial in experiment.trials()]
    return Plan(experiment, {}, tuple(trials))


# --- shares ---


@pytest.mark.parametrize(
    "name", ["w8a", "kar2015/section-6", "kar2015/fig3-kappa", "rudin2009/table-5-housing"]
)
def test_shares_are_even_and_do_not_depend_on_the_order(name):
    plan = plan_of(name)
    wanted = {key for _, key in plan.trials}
    mixed = random.Random(0).sample(plan.trials, len(plan.trials))
    group = {key: (trial.dataset.name, trial.split.index) for trial, key in plan.trials}
    largest = max(Counter(group.values()).values())
    for of in (3, 10):
        for by_split, most in ((False, 1), (True, largest)):
            shards = [Shard(number, of) for number in range(1, of + 1)]
            shares = [shard.keys(plan, wanted, by_split=by_split) for shard in shards]
            assert sorted(key for share in shares for key in share) == sorted(wanted)
            sizes = [len(share) for share in shares]
            assert max(sizes) - min(sizes) <= most
            shuffled = Plan(plan.experiment, {}, tuple(mixed))
            assert shares[1] == shards[1].keys(shuffled, wanted, by_split=by_split)
            if by_split:
                places = [{group[key] for key in share} for share in shares]
                assert sum(map(len, places)) == len(set(group.values()))


def test_shares_of_each_solver_are_even():
    plan = plan_of("letter")
    share = Shard(1, 5).keys(plan, {key for _, key in plan.trials})
    labels = [trial.label for trial, key in plan.trials if key in share]
    assert sorted(labels) == sorted(plan.experiment.solvers)  # one of its five splits


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "-1/3", "1/3/2", "a/b", "1/0", "１/２"])
def test_what_is_no_shard_is_refused(text, tmp_path):
    assert Shard.parse("3/10").folder(tmp_path) == tmp_path / "shards" / "03-of-10"
    with raises(InputError, "shard"):
        Shard.parse(text)


# --- run, status, merge ---


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder for what is run once."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def shards(small, made, tmp_path):
    """Two shards of an experiment with 2 solvers and 3 splits, in the folder ``all``."""
    config = small(solvers=SOLVERS, protocol="{n_splits: 3}")
    for number in (1, 2) if not any(made.iterdir()) else ():
        succeed("run", config, "--out", made, "--shard", f"{number}/2")
    shutil.copytree(made, tmp_path / "all")
    return sorted((tmp_path / "all" / "shards").iterdir())


def test_merged_shards_are_the_run_in_one_piece(small, shards, tmp_path):
    config, results = tmp_path / "small.yaml", tmp_path / "all"
    assert run(config, tmp_path / "one", "--jobs", "2", "--no-plots").exit_code == 0
    assert not list(shards[0].glob("small/*.csv"))  # tables are made once
    said = invoke("status", results).stdout
    tells(said, "small 1/2 3")
    tells(said, "small 2/2 3")
    assert done_already(run(config, results, "--shard", "2/2", "--dry-run").output) == 3
    assert (
        "1/2"
        in json.loads(merge(shards[1], "--out", tmp_path / "r", "--json"))[0]["missing_shards"]
    )
    tells(merge(shards[0], "--out", tmp_path / "r", "--config", config), "small 3 6")
    merge(*shards, "--out", results, "--config", config)
    for folder in (results, tmp_path / "r"):
        assert numbers(tmp_path / "one" / "small").equals(numbers(folder / "small"))
    before = records(results / "small")
    for sources in ([*shards, tmp_path / "r"], [tmp_path / "one"]):  # that at other times
        [about] = json.loads(merge(*sources, "--out", results, "--json"))
        assert about["taken"] == 0 and records(results / "small") == before
    tells(invoke("status", results / "small").stdout, "small 6")
    assert done_already(run(config, results, "--no-plots").output) == 6


def test_what_is_still_to_run_is_reported(shards, tmp_path):
    key, *_ = Store(shards[0] / "small").keys()
    (shards[0] / "small" / "trials" / f"{key}.json").unlink()
    [about] = json.loads(merge(*shards, "--out", tmp_path / "r", "--json"))
    assert (about["taken"], about["left"], about["missing_shards"]) == (5, 1, [])
    tells(merge(shards[0], "--out", tmp_path / "r"), "small 1")


def test_a_share_may_be_empty(shards, tmp_path):
    assert run(tmp_path / "small.yaml", tmp_path, "--shard", "7/9").exit_code == 0
    tells(merge(tmp_path / "shards" / "7-of-9", "--out", tmp_path / "r"), "small 0 1/9")


def changed_copy(folder, tmp_path, **changes):
    """Return a copy of a folder whose first record is another one, and the key of that."""
    other = tmp_path / "other"
    shutil.copytree(folder / "small", other / "small")
    store = Store(other / "small")
    key, *_ = store.keys()
    arrays = store.arrays(key)
    coef = arrays["coef"] + changes.pop("move", 0.0)
    [machine] = store.machines().values()
    elsewhere = store.add_environment({**machine.model_dump(), "cpu": "Another"})
    record = {**store.read(key).to_dict(), "environment": elsewhere, **changes}
    store.write(record, {**arrays, "coef": coef} if record["status"] == "ok" else None)
    return other, key


def test_a_conflict_is_reported_and_nothing_is_written(shards, tmp_path):
    first, out = shards[0], tmp_path / "r"
    other, key = changed_copy(first, tmp_path, move=1e-9)
    refused(["merge", first, other, "--out", out], f"{key[:12]} {first} {other} Another", code=1)
    assert not Store(out / "small").keys()
    merge(first, "--out", out)
    kept = Store(out / "small").arrays(key)["coef"]
    refused(["merge", other, "--out", out], code=1)
    refused(["merge", other, "--out", out, "--keep", first])
    merge(other, first, "--out", out, "--keep", out)
    assert (Store(out / "small").arrays(key)["coef"] == kept).all()
    merge(other, "--out", out, "--keep", other)
    assert (Store(out / "small").arrays(key)["coef"] == kept + 1e-9).all()
    machine = Store(out / "small").read(key).environment
    assert Store(out / "small").machines()[machine].cpu == "Another"


@pytest.mark.parametrize("status", ["failed", "skipped", "timeout"])
def test_a_result_replaces_what_failed_elsewhere(shards, tmp_path, status):
    other, key = changed_copy(shards[0], tmp_path, status=status, reason="no")
    for n, steps in enumerate(([(shards[0], other)], [(other, shards[0])], [(other,), shards[:1]])):
        for folders in steps:
            merge(*folders, "--out", tmp_path / f"r{n}")
        assert Store(tmp_path / f"r{n}" / "small").read(key).status == "ok"


@pytest.mark.promise("R14")
@pytest.mark.parametrize("what", ["json", "key", "npz"])
def test_untrusted_records_are_checked_before_anything_is_written(shards, tmp_path, what):
    store = Store(shards[1] / "small")
    key, other, *_ = store.keys()
    path = store.folder / "trials" / f"{key}.json"
    if what == "key":
        path.write_text(path.read_text().replace(f'"key": "{key}"', f'"key": "{other}"'))
    else:
        os.truncate(path.with_suffix(f".{what}"), 20)
    refused(["merge", *shards, "--out", tmp_path / "r"], "is damaged")
    assert not Store(tmp_path / "r" / "small").keys()


def test_what_cannot_be_merged_is_refused(shards, tmp_path):
    refused(["merge", tmp_path / "no", "--out", tmp_path], str(tmp_path / "no"))
    refused(["merge", shards[0] / "small" / "trials", "--out", tmp_path])
    keep = ["--keep", tmp_path / "c"]
    refused(["merge", *shards, "--out", tmp_path, *keep], "--keep")
    refused(["run", "kar2015/minima", "--shard", "1/2"], "--shard")
