"""The nonlinear regressions of NIST's Statistical Reference Datasets, and how to fit them.

The National Institute of Standards and Technology of the United States publishes 27 problems
with measured (a few: made-up) data, two starting points each, and answers certified to 11
digits in 128-bit arithmetic: https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml. With
exact Jacobians and the settings in `fit.py`, SciPy's solver reaches six digits and more in all
54 runs; with its own finite differences, six runs stay below that and Hahn1 ends at two digits.
"""
