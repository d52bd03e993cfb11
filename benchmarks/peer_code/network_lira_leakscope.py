"""Leakscope: the offline likelihood-ratio attack on a network, with the report."""

from given import Network, X_in, X_out, network, shadows, y_in, y_out

import leakscope as ls
from leakscope.recipes.torch import TorchRecipe

recipe = TorchRecipe("mlp", Network, lr=1e-2, weight_decay=1e-4, batch_size=128, epochs=10)
report = ls.audit(
    network,
    (X_in, y_in),
    (X_out, y_out),
    recipe=recipe,
    attacks=["lira-offline"],
    shadows=shadows,
    workers=1,
    out="run",
)
# what is compared
scores = report.records.columns["score_lira-offline"]
membership = [side == "member" for side in report.records.columns["side"]]
