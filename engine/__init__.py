"""The user's side: arrays, tracing, transforms as functions, compilation caches."""
