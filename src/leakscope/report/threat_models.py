"""What an attacker needs for an attack, in half a sentence."""

from __future__ import annotations

from leakscope.report.words import count

# What each channel of a model's predictions shows to an attacker.
SEES = {
    "label": "predicted labels",
    "probabilities": "class probabilities",
    "loss": "the loss on each record",
    "margin": "class probabilities",
    "entropy": "class probabilities",
    "modified-entropy": "class probabilities",
    "robustness": "predicted labels of noisy copies",
    "noisy-margin": "class probabilities of noisy copies",
    "records": "training records shown as explanations",
}
# The channels of a model's own predictions on the records: labels, confidence and loss.
PREDICTIONS = {"label", "loss", "probabilities", "margin", "entropy", "modified-entropy"}
# Channels that stay open when a service returns labels alone.
LABELS_ONLY = {"label", "robustness"}

ALSO = {
    "average training loss": "knows the average training loss",
    "members of the other half": "knows half of the members",
}


def sees_predictions(channel: str) -> bool:
    """Whether a channel shows labels, confidence or loss of the records, and nothing else."""
    return set(channel.split("+")) <= PREDICTIONS


def is_explanation(channel: str) -> bool:
    """Whether the attack needs an explanation of predictions."""
    return any(part not in SEES or part == "records" for part in channel.split("+"))


def threat_model(channel: str, knowledge: str, models: int) -> str:
    """What the attacker sees and knows: ``sees class probabilities and knows half of the members``.

    Parameters
    ----------
    channel : str
        The attack's channel; several are joined by ``+``.
    knowledge : str
        What the attack declares to know besides the channel.
    models : int
        Number of models the attack rests on, the target included.
    """
    shown = dict.fromkeys(
        SEES.get(part, f"{part.removesuffix('-summary')} explanations")
        for part in channel.split("+")
    )
    needs = ["sees " + " with ".join(shown)]
    if models > 1:
        needs.append(f"trains {count(models - 1)} shadow models")
    elif knowledge in ALSO:
        needs.append(ALSO[knowledge])
    return " and ".join(needs)
