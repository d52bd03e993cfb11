"""Leakscope: every attack on one model, the controls, and the report as a page."""

from given import X_in, X_out, model, y_in, y_out

import leakscope as ls

report = ls.audit(model, (X_in, y_in), (X_out, y_out), out="run")
# what is compared
best = max(report.outcomes, key=lambda one: one["auc"]["value"])["attack"]
scores = report.records.columns[f"score_{best}"]
membership = [side == "member" for side in report.records.columns["side"]]
