"""What programs must know about float32 and float64: bit layout and constants in two parts.

``ln2_high`` (and ``log10_2_high``) end in as many zero bits as an exponent has digits, so that its
product with any exponent is exact; ``x_high + x_low`` is the constant to twice the precision.
Computed with mpmath at 300 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dtypes import DType, float32, float64, int32, int64, uint32, uint64

__all__ = ["Format", "format_of"]


@dataclass(frozen=True, slots=True)
class Format:
    """One binary floating format.

    Attributes
    ----------
    integer, unsigned : DType
        Integers of the same width.
    fraction : int
        Stored fraction bits.
    bias : int
        Exponent of 1.0 as stored.
    magic : float
        ``1.5 * 2**fraction``: adding it rounds a smaller number to an integer, which then stands
        in the lowest bits.
    smallest : float
        Smallest normal number.
    sqrt_half_bits : int
        Bits of ``sqrt(1/2)``.
    """

    integer: DType
    unsigned: DType
    fraction: int
    bias: int
    magic: float
    smallest: float
    sqrt_half_bits: int
    ln2: tuple[float, float]
    ln2_high: float
    ln2_low: float
    log2_e: tuple[float, float]
    log10_e: tuple[float, float]
    log10_2_high: float
    log10_2_low: float

    @property
    def one_bits(self) -> int:
        """Bits of 1.0."""
        return self.bias << self.fraction

    @property
    def infinity_bits(self) -> int:
        return (2 * self.bias + 1) << self.fraction


_hex = float.fromhex
_FLOAT64 = Format(
    integer=int64,
    unsigned=uint64,
    fraction=52,
    bias=1023,
    magic=1.5 * 2.0**52,
    smallest=2.0**-1022,
    sqrt_half_bits=0x3FE6A09E667F3BCD,
    ln2=(_hex("0x1.62e42fefa39efp-1"), _hex("0x1.abc9e3b39803fp-56")),
    ln2_high=_hex("0x1.62e42fefa3800p-1"),
    ln2_low=_hex("0x1.ef35793c76730p-45"),
    log2_e=(_hex("0x1.71547652b82fep+0"), _hex("0x1.777d0ffda0d24p-56")),
    log10_e=(_hex("0x1.bcb7b1526e50ep-2"), _hex("0x1.95355baaafad3p-57")),
    log10_2_high=_hex("0x1.34413509f7800p-2"),
    log10_2_low=_hex("0x1.fef311f12b358p-46"),
)
_FLOAT32 = Format(
    integer=int32,
    unsigned=uint32,
    fraction=23,
    bias=127,
    magic=1.5 * 2.0**23,
    smallest=2.0**-126,
    sqrt_half_bits=0x3F3504F3,
    ln2=(_hex("0x1.62e43p-1"), _hex("-0x1.05c61p-29")),
    ln2_high=_hex("0x1.62e4p-1"),
    ln2_low=_hex("0x1.7f7d1cp-20"),
    log2_e=(_hex("0x1.715476p+0"), _hex("0x1.4ae0cp-26")),
    log10_e=(_hex("0x1.bcb7b2p-2"), _hex("-0x1.5b235ep-27")),
    log10_2_high=_hex("0x1.3442p-2"),
    log10_2_low=_hex("-0x1.95ec1p-19"),
)


def format_of(dtype: DType) -> Format:
    """The format of a real floating dtype."""
    return {float64: _FLOAT64, float32: _FLOAT32}[dtype]
