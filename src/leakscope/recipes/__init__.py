"""Recipes: how a model is made from records, each registered where it stands."""
