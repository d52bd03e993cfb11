from __future__ import annotations

import pytest

from leakscope.papers.wang_printed import printed
from leakscope.papers.wang_setups import SETUPS


@pytest.mark.parametrize(
    ("number", "rows", "defenses"),
    [
        (1, 18, {"none", "prune", "minmax"}),
        (2, 4, {"dpsgd", "prune"}),
        (3, 4, {"none", "prune"}),
        (5, 6, {"prune", "prune+minmax"}),
        (6, 4, {"none", "prune", "minmax", "prune+minmax"}),
    ],
)
def test_every_number_of_a_table_is_there(number: int, rows: int, defenses: set[str]) -> None:
    found = printed(f"wang-table{number}")
    assert len(found) == rows
    assert {row["defense"] for row in found} == defenses
    assert all(row["setup"] in SETUPS for row in found)
    for row in found:
        assert 0.5 < row["attack_accuracy"] < 0.8
        assert 0.5 < row["test_accuracy"] < 1


def test_numbers_are_those_in_print() -> None:
    one = {(row["setup"], row["defense"]): row for row in printed("wang-table1")}
    assert one["CIFAR-100-VGG16", "none"]["attack_accuracy"] == 0.67628
    assert one["MNIST-LeNet-5", "prune"]["test_accuracy"] == 0.9939
    two = {(row["setup"], row["defense"]): row for row in printed("wang-table2")}
    assert two["MNIST-LeNet-5", "prune"]["test_accuracy"] == 0.9930
    assert two["MNIST-LeNet-5", "dpsgd"]["attack_accuracy"] == 0.7854
    # Table 5 and 6 repeat what Table 1 has of the same networks.
    for number in (5, 6):
        for row in printed(f"wang-table{number}"):
            if (before := one.get((row["setup"], row["defense"]))) is not None:
                assert all(row[key] == value for key, value in before.items())
    four = printed("wang-table4")
    assert [row["ratio"] for row in four] == [15.78, 13.84, 10.54, 10.06, 3.37, 3.27]
    assert four[0] == {
        "data": "MNIST", "model": "LeNet-5", "weights": "60 K", "weights_kept": "3.80 K",
        "ratio": 15.78,
    }  # fmt: skip
