"""Schedule to code: scalar math, LLVM and CUDA emission, hand-written kernels."""
