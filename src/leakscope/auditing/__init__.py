"""The audit: a model, the records it was trained on and records it was not, in; a report out."""

from leakscope.auditing.facade import audit, audit_predictions

__all__ = ["audit", "audit_predictions"]
