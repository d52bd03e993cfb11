"""Leakscope: every model without one record at once, and what each costs the held-out records."""

from given import X_in, X_out, y_in, y_out

from leakscope.exact import leave_one_out

found = leave_one_out(X_in, y_in, workers=1)
values = found.influence(X_out, y_out, measure="log-loss").mean(axis=0)
