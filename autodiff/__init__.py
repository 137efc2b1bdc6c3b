"""Transforms of the web of nodes: forward and reverse derivatives, batching."""
