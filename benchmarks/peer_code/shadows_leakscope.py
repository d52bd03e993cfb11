"""Leakscope: a classifier taught by shadow models, as Shokri et al. do."""

from given import X_in, X_out, model, shadows, y_in, y_out

import leakscope as ls

report = ls.audit(
    model, (X_in, y_in), (X_out, y_out), attacks=["shadow"], shadows=shadows, workers=1
)
# what is compared
scores = report.records.columns["score_shadow"]
membership = [side == "member" for side in report.records.columns["side"]]
