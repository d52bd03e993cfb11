from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakscope.auditing.battery import channel_of
from leakscope.channels.explanations import Gradient
from leakscope.channels.joined import Joined
from leakscope.channels.outputs import Label, Loss, Probabilities
from leakscope.channels.parameters import Parameters
from leakscope.errors import InputError, UnknownNameError
from leakscope.models import as_model
from leakscope.protocols import BOTH, CLASSIFICATION
from leakscope.records import Records
from leakscope.trials import random_halves, run_trials

RECORDS = Records(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2)


@pytest.fixture(scope="module")
def model():
    return as_model(LogisticRegression().fit(RECORDS.X, RECORDS.y))


def test_the_columns_of_the_parts_stand_side_by_side(model):
    joined = Joined((Gradient(), Label(), Probabilities()))
    seen = joined.observe(model, RECORDS)
    assert joined.name == "gradient+label+probabilities"
    assert seen.shape == (40, joined.width(model)) == (40, 3 + 1 + 2)
    np.testing.assert_array_equal(seen[:, :3], Gradient().observe(model, RECORDS))
    np.testing.assert_array_equal(seen[:, 3], model.predict(RECORDS.X))
    np.testing.assert_array_equal(seen[:, 4:], model.predict_proba(RECORDS.X))


def test_it_needs_what_any_part_needs_and_is_for_tasks_of_all():
    assert Joined((Loss(), Label())).needs == Loss.needs | Label.needs
    assert Joined((Loss(), Label())).tasks == BOTH
    assert Joined((Loss(), Probabilities())).tasks == CLASSIFICATION


def test_it_is_made_of_names_with_the_seed_where_there_is_one():
    joined = channel_of("smoothgrad+label", 7)
    assert joined == Joined((channel_of("smoothgrad", 7), Label()))
    assert joined.parts[0].seed == 7
    with pytest.raises(UnknownNameError):
        channel_of("gradient+nothing", 0)


def test_what_shows_a_whole_model_does_not_stand_beside_records(model):
    joined = Joined((Label(), Parameters()))
    for ask in (lambda: joined.width(model), lambda: joined.observe(model, RECORDS)):
        with pytest.raises(InputError, match="'parameters' shows the model as a whole"):
            ask()


def test_trials_store_it_under_its_name_and_options(tmp_path, monkeypatch):
    roles = random_halves(len(RECORDS), 2, 0)

    def run(channel):
        return run_trials(
            LogisticRegression(), RECORDS, roles, [channel], seed=0, store=tmp_path, workers=1
        ).observations

    plain = Joined((Loss(), Label()))
    assert pickle.loads(pickle.dumps(plain)) == plain
    assert run(plain)["loss+label"].shape == (2, 40, 2)
    files = {path.name for path in tmp_path.rglob("loss+label-*.npy")}
    assert len(files) == 1
    run(plain)
    assert {path.name for path in tmp_path.rglob("loss+label-*.npy")} == files
    noisy = [channel_of("robustness+label", seed) for seed in (0, 1)]
    for channel in noisy:
        run(channel)
    assert len({path.name for path in tmp_path.rglob("robustness+label-*.npy")}) == 2
