"""The numbers that Wang et al. (2020) print, as they print them, with percentages as shares."""

from __future__ import annotations

from leakscope.papers.experiment import Row

# By set-up: test accuracy and attack accuracy of each defense.
_Figures = dict[str, tuple[tuple[float, float], ...]]

_TABLE_1: _Figures = {
    "MNIST-LeNet-5": ((0.993, 0.6700), (0.9939, 0.5341), (0.9898, 0.5600)),
    "CIFAR-10-VGG16": ((0.9128, 0.6199), (0.9138, 0.5902), (0.9097, 0.6035)),
    "CIFAR-10-MobileNetV2": ((0.9009, 0.6275), (0.8614, 0.5898), (0.8971, 0.5791)),
    "CIFAR-100-VGG16": ((0.6484, 0.67628), (0.6693, 0.5861), (0.6571, 0.6859)),
    "CIFAR-100-MobileNetV2": ((0.6414, 0.6615), (0.5772, 0.6267), (0.6336, 0.6261)),
    "CIFAR-100-ResNet-18": ((0.7345, 0.6985), (0.7410, 0.6350), (0.6905, 0.7178)),
}
_TABLE_2: _Figures = {
    "CIFAR-10-CNN": ((0.6810, 0.5830), (0.7546, 0.5736)),
    "MNIST-LeNet-5": ((0.9664, 0.7854), (0.9930, 0.5341)),
}
_TABLE_3: _Figures = {
    "ImageNet-MobileNetV2": ((0.7188, 0.6690), (0.6877, 0.6479)),
    "ImageNet-ResNet-18": ((0.6976, 0.6620), (0.6930, 0.6127)),
}
_TABLE_5: _Figures = {
    "CIFAR-10-VGG16": ((0.9138, 0.5902), (0.8919, 0.5467)),
    "CIFAR-100-VGG16": ((0.6693, 0.5861), (0.5471, 0.5765)),
    "MNIST-LeNet-5": ((0.9939, 0.5341), (0.9903, 0.5400)),
}
# Accuracy in training, on the test set, and of the attack, of VGG16 on CIFAR-10.
_TABLE_6 = {
    "none": (0.9966, 0.9128, 0.6199),
    "prune": (0.9922, 0.9138, 0.5902),
    "minmax": (0.9918, 0.9097, 0.6035),
    "prune+minmax": (0.9286, 0.8919, 0.5467),
}
# Weights, weights after pruning, and how many times fewer they are.
_TABLE_4 = (
    ("MNIST", "LeNet-5", "60 K", "3.80 K", 15.78),
    ("CIFAR-10/100", "VGG16", "13.83 M", "1.00 M", 13.84),
    ("CIFAR-10/100", "ResNet-18", "11.17 M", "1.06 M", 10.54),
    ("CIFAR-10/100", "MobileNetV2", "3.46 M", "0.34 M", 10.06),
    ("ImageNet", "ResNet-18", "11.17 M", "3.47 M", 3.37),
    ("ImageNet", "MobileNetV2", "3.46 M", "1.06 M", 3.27),
)
_PAIRS: dict[str, tuple[_Figures, tuple[str, ...]]] = {
    "wang-table1": (_TABLE_1, ("none", "prune", "minmax")),
    "wang-table2": (_TABLE_2, ("dpsgd", "prune")),
    "wang-table3": (_TABLE_3, ("none", "prune")),
    "wang-table5": (_TABLE_5, ("prune", "prune+minmax")),
}


def printed(experiment: str) -> list[Row]:
    """The rows of a table of the paper, by the name of the experiment that computes it again."""
    if experiment == "wang-table4":
        keys = ("data", "model", "weights", "weights_kept", "ratio")
        return [dict(zip(keys, row, strict=True)) for row in _TABLE_4]
    if experiment == "wang-table6":
        return [
            {
                "setup": "CIFAR-10-VGG16", "defense": defense, "train_accuracy": train,
                "test_accuracy": test, "attack_accuracy": attack,
            }
            for defense, (train, test, attack) in _TABLE_6.items()
        ]  # fmt: skip
    table, defenses = _PAIRS[experiment]
    return [
        {"setup": setup, "defense": defense, "test_accuracy": test, "attack_accuracy": attack}
        for setup, figures in table.items()
        for defense, (test, attack) in zip(defenses, figures, strict=True)
    ]
