"""Lakh: the software of a 100,000-accelerator AI cluster, from one description of it."""

__version__ = "0.1.0"
