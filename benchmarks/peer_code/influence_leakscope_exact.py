"""Leakscope: the same without approximation, every model without one record."""

from given import X_in, X_out, y_in, y_out

from leakscope.exact import leave_one_out

values = leave_one_out(X_in, y_in, workers=1).influence(X_out, y_out, measure="log-loss")
