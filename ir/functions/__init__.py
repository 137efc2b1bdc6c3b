"""Functions over graph values, composed of the primitive ops, by NumPy's names and arguments."""
