"""Leakscope: trees taught on the predictions of known members."""

from given import X_in, X_out, model, y_in, y_out

import leakscope as ls

report = ls.audit(model, (X_in, y_in), (X_out, y_out), attacks=["gradient-boosting"])
# what is compared
scores = report.records.columns["score_gradient-boosting"]
membership = [side == "member" for side in report.records.columns["side"]]
