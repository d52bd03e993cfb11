"""Leakscope: the offline likelihood-ratio attack, with the report."""

from given import X_in, X_out, model, shadows, y_in, y_out

import leakscope as ls

report = ls.audit(
    model,
    (X_in, y_in),
    (X_out, y_out),
    attacks=["lira-offline"],
    shadows=shadows,
    workers=1,
    out="run",
)
# what is compared
scores = report.records.columns["score_lira-offline"]
membership = [side == "member" for side in report.records.columns["side"]]
