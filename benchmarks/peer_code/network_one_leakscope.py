"""Leakscope: the threshold on the loss, with the report."""

from given import X_in, X_out, network, y_in, y_out

import leakscope as ls

report = ls.audit(network, (X_in, y_in), (X_out, y_out), attacks=["loss"], out="run")
# what is compared
scores = report.records.columns["score_loss"]
membership = [side == "member" for side in report.records.columns["side"]]
