"""Channels: what an adversary sees of a model, each a small class registered where it stands."""
