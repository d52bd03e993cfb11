"""Leakscope: every attack, on shadow models and without, leakage, controls and the report."""

from given import X_in, X_out, model, shadows, y_in, y_out

import leakscope as ls

report = ls.audit(model, (X_in, y_in), (X_out, y_out), shadows=shadows, workers=1, out="run")
# what is compared
best = max(report.outcomes, key=lambda one: one["auc"]["value"])["attack"]
scores = report.records.columns[f"score_{best}"]
membership = [side == "member" for side in report.records.columns["side"]]
