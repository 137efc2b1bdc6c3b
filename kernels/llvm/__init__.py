"""Scalar programs as LLVM code, scalar or explicit vectors."""
