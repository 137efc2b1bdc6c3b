"""Arguments that the caller gives away: ``jit(f, donate_argnums=0)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.errors import DeletedError
from ..ir.location import Place, at_user_line, location_of
from ..ir.types import TensorType
from ..kernels.storage import is_alone

__all__ = ["Donation", "deleted_error", "give_away"]


class Donation(tuple[Any, ...]):
    """Stands in an array whose memory was given away, in place of its peers: it has none."""

    title: str
    place: Place | None

    @staticmethod
    def to(title: str, place: Place | None) -> Donation:
        made = Donation()
        made.title, made.place = title, place
        return made


def deleted_error(type: TensorType, donation: Donation) -> DeletedError:
    """The error for using an array of this type after its donation."""
    location = location_of(donation.place)
    where = f" at {location.filename}:{location.line}" if location is not None else ""
    return at_user_line(
        DeletedError(
            f"array {type}: expected an array with values, got one that was donated to "
            f"{donation.title}{where}, which may have used its memory for results; use those, or "
            f"leave its argument out of donate_argnums"
        )
    )


def give_away(
    arrays: Sequence[Any], buffers: list[Any], places: Sequence[int], donation: Donation
) -> tuple[int, ...]:
    """Delete donated arrays; those of ``places`` whose buffers nobody else can reach.

    Parameters
    ----------
    arrays : sequence of Array
        Computed ones.
    buffers : list of ndarray
        What a call holds, the buffers of ``arrays`` at ``places``.
    """
    for array in arrays:
        array._delete(donation)
    return tuple([k for k in places if is_alone(buffers, k)])
