"""Readings of scalar programs that need nothing but NumPy."""
