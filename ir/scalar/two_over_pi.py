"""The bits of ``2/pi`` that matter for arguments of one size.

Row ``k`` serves the float64 numbers with biased exponents from ``32 (k + FIRST_BUCKET)`` on. It
holds ``2/pi`` without the bits that give multiples of 4 times any such number, times ``SCALE``, as
the unevaluated sum of four doubles, each the nearest to what the ones before leave. Their 216 bits
reach from ``2^86`` to ``2^-130`` in the product: 62 bits of cancellation, 53 of result and some to
guard. Computed with mpmath; a test computes them again.
"""

from __future__ import annotations

__all__ = ["FIRST_BUCKET", "SCALE", "TWO_OVER_PI"]

FIRST_BUCKET = 32
SCALE = 2.0**200  # keeps the last bits for the largest numbers above the underflow threshold

_ROWS = """
0x1.45f306dc9c883p+199 -0x1.6b01ec5417056p+145 -0x1.6447e493ad4cep+91 0x1.e21c820ff28b2p+37
0x1.45f306dc9c883p+199 -0x1.6b01ec5417056p+145 -0x1.6447e493ad4cep+91 0x1.e21c820ff28b2p+37
0x1.9836e4e44152ap+188 -0x1.ec54170565912p+129 0x1.b6c52b3278872p+71 0x1.07f9458eaf7afp+14
0x1.054a7f09d5f48p+154 -0x1.596447e493ad5p+99 0x1.93c439041fe51p+44 0x1.8eaf7aef1586ep-10
0x1.d5f47d4d37703p+122 0x1.b6295993c4390p+68 0x1.07f9458eaf7afp+14 -0x1.d4f246dc8e2dfp-43
0x1.4ddc0db629599p+92 0x1.e21c820ff28b2p+37 -0x1.508510ea79237p-18 0x1.b8e909374b802p-74
0x1.4acc9e21c8210p+57 -0x1.ae9c5421443aap+0 0x1.b7246e3a424ddp-56 0x1.700324977504fp-111
0x1.c820ff28b1d5fp+25 -0x1.443a9e48db91cp-32 -0x1.6f6c8b47fe6dbp-86 -0x1.115f62e6de302p-140
0x1.163abdebbc562p-4 -0x1.236e4716f6c8bp-58 -0x1.1ff9b6d115f63p-112 0x1.921cfe1deb1cbp-168
0x1.bc561b7246e3ap-36 0x1.09374b801924cp-90 -0x1.15f62e6de301ep-144 -0x1.0a71a76b2c609p-199
0x1.1b8e909374b80p-70 0x1.924bba8274648p-126 0x1.cfe1deb1cb12ap-180 -0x1.63045df7282b4p-234
0x1.ba5c00c925dd4p-101 0x1.3a32439fc3bd6p-157 0x1.cb129a73ee882p-212 0x1.afa975da24275p-267
0x1.25dd413a3243ap-133 -0x1.e214e34ed658cp-192 -0x1.177dca0ad144cp-248 0x1.213a671c09ad1p-302
0x1.1921cfe1deb1dp-164 -0x1.3b5963045df73p-218 0x1.f52ebb4484e9ap-272 -0x1.c7eca5d040df6p-327
0x1.deb1cb129a73fp-196 -0x1.77dca0ad144bbp-252 -0x1.ec598e3f652e8p-306 -0x1.037d8cdc538d0p-361
0x1.34e7dd1046beap-229 0x1.75da24274ce38p-283 0x1.35a2fbf209cc9p-339 -0x1.4e33e566305b2p-395
0x1.1afa975da2427p-263 0x1.338e04d68befdp-317 -0x1.f633714e33e56p-371 -0x1.8c16c6f740e88p-425
0x1.b4484e99c7027p-292 -0x1.2e8206fb19b8ap-346 -0x1.c67cacc60b638p-400 0x1.17e2ef7e4a0ecp-454
0x1.c7026b45f7e41p-324 0x1.cc8eb1cc1a99dp-379 -0x1.6c6f740e8840ep-437 0x1.41d8ffc4bffefp-491
0x1.f7e413991d63ap-356 -0x1.f2b3182d8dee8p-410 -0x1.d1081b5f13802p-466 0x1.2fffbc0b301fep-521
0x1.1d639835339f5p-388 -0x1.8dee81d1081b6p-442 0x1.d8ffc4bffef03p-499 -0x1.9fc04343b9d29p-554
0x1.339f49c845f8cp-420 -0x1.081b5f13801dap-474 -0x1.0fd33f8086877p-539 -0x1.d297d64b824b2p-594
0x1.17e2ef7e4a0ecp-454 0x1.ff897ffde0598p-508 0x1.fde5e2316b415p-565 -0x1.2e092c98130d8p-620
0x1.9283b1ff89800p-484 -0x1.0fd33f8086877p-539 -0x1.d297d64b824b2p-594 -0x1.8130d834f648bp-648
0x1.897ffde059810p-516 -0x1.0d0ee74a5f593p-572 0x1.f6d367ecf27cbp-628 0x1.36e9e8c7ecd3dp-685
0x1.6603fbcbc462dp-550 0x1.a0a6d1f6d367fp-604 -0x1.86c1a7b24585dp-659 0x1.fb34f2ff516bbp-715
0x1.e2316b414da3fp-581 -0x1.2c98130d834f6p-636 -0x1.22c2e70265868p-690 -0x1.5d28ad8453814p-748
0x1.4da3eda6cfd9ep-613 0x1.3e584dba7a320p-667 -0x1.32c3402ba515bp-721 -0x1.14e050683a131p-778
0x1.67ecf27cb09b7p-644 0x1.3d18fd9a797fbp-698 -0x1.d28ad84538142p-752 0x1.7c5ecf41ce7dep-806
0x1.6136e9e8c7ecdp-677 0x1.e5fea2d7527bbp-732 -0x1.c0a0d0742617cp-787 -0x1.8c10eb5ada2b3p-841
0x1.8fd9a797fa8b6p-710 -0x1.5b08a7028341dp-765 -0x1.30be31821d6b6p-822 0x1.2ea6bfb5fb120p-876
0x1.fea2d7527bac8p-740 -0x1.41a0e84c2f8c6p-796 -0x1.0eb5ada2b2809p-853 -0x1.0277039517bd5p-907
"""
_PARTS = [[float.fromhex(part) for part in row.split()] for row in _ROWS.strip().splitlines()]

# one column for each of the four parts, indexed by row
TWO_OVER_PI: tuple[tuple[float, ...], ...] = tuple(zip(*_PARTS, strict=True))
