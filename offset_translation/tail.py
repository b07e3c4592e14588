"""The mirrored end of a log that others write to as well, read off its batches' headers. Pure.

A mirror's batches are known by their producer id, and their sequences are their places modulo
2^31. Begin at a place and an offset of which the map is sure, and show every batch from there on.
"""

from typing import Final

from offset_translation.map_records import Reached
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place

SEQUENCES: Final = 2**31


class TailGarbled(ValueError):
    """The mirror's own batches contradict the map; the message says where."""


class Tail:
    """One partition's tail, as far as its batches have been shown."""

    def __init__(self, offset_map: OffsetMap, place: Place) -> None:
        """Begin at a place before which all is mirrored, and known where."""
        self.place = place
        """Before it everything is in the log."""
        self.runs: list[tuple[Place, int]] = []
        """(place, target offset) of each run that the map does not have yet."""
        self._shift = offset_map.runs.end_of(place) - place
        self.has_seen = False
        self.untold = ""
        """Why the log does not tell what came behind that place; nothing if it does."""

    @property
    def reached(self) -> Reached:
        """The mirrored end: the place that comes next, and the target offset it ends at."""
        return Reached(place=self.place, target_end=self.place + self._shift)

    def take(self, base_offset: int, base_sequence: int, record_count: int) -> None:
        """Take the mirror's next batch; raises TailGarbled if it cannot be the next one.

        Batches may be missing (compaction, retention), but not come again.
        """
        place = Place(self.place + (base_sequence - self.place) % SEQUENCES)
        shift = base_offset - place
        if shift < self._shift:
            raise TailGarbled(
                f"the mirror's batch at target offset {base_offset} has sequence {base_sequence}, "
                f"behind it {self.place % SEQUENCES} or later was expected"
            )
        if shift > self._shift:
            self.runs.append((place, base_offset))
            self._shift = shift
        self.place = Place(place + record_count)
        self.has_seen = True

    def tell_runs(self) -> None:
        """Forget the runs: the map has them now."""
        self.runs.clear()


def sure_place(offset_map: OffsetMap, target_end: int) -> tuple[Place, int]:
    """Return the last place, and its target offset, of which a map is sure whatever a log holds.

    It begins the last run, or the oldest piece where the target had no records of its own before.
    """
    first = offset_map.first_place
    return max(offset_map.runs.last_before(target_end), (first, offset_map.runs.start_of(first)))


def place_if_expected(offset_map: OffsetMap, base_offset: int, base_sequence: int) -> Place | None:
    """Return the place of a mirror's batch before which nobody else has written since the last run.

    The answer is None if others have, or if the map's last run is not the last any more.
    """
    place, target = offset_map.runs.last_before(offset_map.target_end)
    found = base_offset - (target - place)
    is_expected = found >= place and found % SEQUENCES == base_sequence
    return Place(found) if is_expected else None
