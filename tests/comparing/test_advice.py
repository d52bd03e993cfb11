from __future__ import annotations

import pytest

from leakscope.comparing.advice import advise


def steady(right, found):
    return [(right + move, found + move) for move in (-0.001, 0.0, 0.001)]


@pytest.fixture
def told(contest):
    def tell(figures, limit=0.1, epochs=10.0):
        found = contest(figures)
        summaries = {name: found.summary(name) | {"epochs": epochs} for name in found.names}
        return advise(found, summaries, limit)

    return tell


def test_the_most_private_without_a_sure_loss_is_taken(told):
    sentence = told(
        {
            "none": steady(0.70, 0.80),
            "early-stop:12": steady(0.70, 0.65),
            "l2:1": steady(0.70, 0.70),
            "dpsgd:1": steady(0.50, 0.51),
        }
    )
    assert sentence.startswith(
        "early-stop:12 is surely more private than none: the strongest attack is right about 65 of "
        "100 records instead of 80, without a sure loss of test accuracy (0.0 points ("
    )
    assert sentence.endswith(".")


def test_a_rival_that_is_as_private_and_less_accurate_is_named(told):
    sentence = told(
        {
            "none": steady(0.70, 0.80),
            "early-stop (accuracy 0.9)": steady(0.72, 0.65),
            "prune:16": steady(0.70, 0.66),
        },
        epochs=12.2,
    )
    assert sentence.startswith("early-stop (accuracy 0.9), about epoch 12, is surely more private")
    assert "and test accuracy gains 2.0 points (" in sentence
    assert "; it is as private as prune:16 and 2.0 points (" in sentence
    assert sentence.endswith("more accurate.")


def test_a_rival_that_may_be_more_private_is_not_said_to_be_as_private(told):
    sentence = told(
        {"none": steady(0.7, 0.8), "a": steady(0.72, 0.65), "b": steady(0.7, 0.55)}, limit=0.1
    )
    assert "as private" not in sentence


def test_where_all_cost_accuracy_the_cheapest_is_taken_with_its_price(told):
    sentence = told({"none": steady(0.7, 0.8), "a": steady(0.65, 0.6), "b": steady(0.5, 0.5)})
    assert sentence.startswith("a is surely more private than none")
    assert "for a loss of 5.0 points (" in sentence


def test_no_defense_is_needed_where_nothing_is_found(told):
    sentence = told({"none": steady(0.7, 0.52), "a": steady(0.7, 0.52)})
    assert sentence.startswith("No defense is needed at the limit of 0.1: without any, the ")
    assert "52 of 100 records (at most 52)" in sentence


def test_no_defense_is_surely_better(told):
    noisy = [(0.7, 0.6), (0.7, 0.8), (0.7, 0.9)]
    sentence = told({"none": steady(0.7, 0.8), "a": noisy, "b": steady(0.7, 0.9)})
    assert sentence.startswith(
        "No defense is surely more private than none: with a, the most private of them, the "
        "strongest attack is right about 77 of 100 records instead of 80, a difference of −3.3 "
        "points ("
    )
