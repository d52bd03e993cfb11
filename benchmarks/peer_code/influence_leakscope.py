"""Leakscope: influence functions, to first order."""

from given import X_in, X_out, y_in, y_out

from leakscope.exact import koh_liang

values = koh_liang(X_in, y_in).influence(X_out, y_out, measure="log-loss")
