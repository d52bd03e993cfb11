"""Figures and tables of the papers, computed again: rows beside the numbers in print."""
