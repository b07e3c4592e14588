"""The records of a refused batch that are to blame are named (KIP-467)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.log.config import LogConfig
from broker.log.results import BatchRefused
from broker.log.validation import MOST_NAMED, check_produced, record_rules
from wire.compression import Compression
from wire.errors import ErrorCode
from wire.record_batch import BatchHeader, Record, build_batch

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
DEFAULT = LogConfig()
COMPACTED = DEFAULT.with_overrides({"cleanup.policy": "compact"})
NOT_OLD = DEFAULT.with_overrides({"message.timestamp.before.max.ms": "60000"})
NEAR = DEFAULT.with_overrides({"message.timestamp.difference.max.ms": "60000"})
NOT_NEW = DEFAULT.with_overrides({"message.timestamp.after.max.ms": "60000"})
STRICT = COMPACTED.with_overrides({"message.timestamp.before.max.ms": "60000"})


def batch_of(*records: tuple[int, bytes | None], compression: Compression) -> bytes:
    """A batch of (time, key)."""
    return build_batch(
        [Record(place, time_ms, key, b"v") for place, (time_ms, key) in enumerate(records)],
        compression=compression,
    )


def blamed(batch: bytes, config: LogConfig) -> tuple[ErrorCode, list[int]]:
    found = check_produced(batch, config, NOW_MS)
    if isinstance(found, BatchHeader):
        return ErrorCode.NONE, []
    assert isinstance(found, BatchRefused)
    return found.error, [place for place, _ in found.record_errors]


@pytest.mark.parametrize("offset_ms", [-HOUR_MS, HOUR_MS])
def test_the_older_setting_bounds_stamps_on_both_sides(offset_ms: int) -> None:
    batch = batch_of((NOW_MS, b"k"), (NOW_MS + offset_ms, b"k"), compression=Compression.NONE)
    assert blamed(batch, NEAR)[0] is ErrorCode.INVALID_TIMESTAMP
    assert blamed(batch, DEFAULT)[0] is ErrorCode.NONE


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_an_old_record_in_the_middle_of_a_batch_is_found_and_named(
    compression: Compression,
) -> None:
    """Kafka answers the same of [now, now, an hour ago, now]."""
    times = (NOW_MS, NOW_MS, NOW_MS - HOUR_MS, NOW_MS)
    batch = batch_of(*((time_ms, b"k") for time_ms in times), compression=compression)
    assert blamed(batch, NOT_OLD) == (ErrorCode.INVALID_TIMESTAMP, [2])
    assert blamed(batch, DEFAULT) == (ErrorCode.NONE, [])


def test_a_record_of_the_future_is_named() -> None:
    times = (NOW_MS, NOW_MS + HOUR_MS, NOW_MS)
    batch = batch_of(*((time_ms, b"k") for time_ms in times), compression=Compression.NONE)
    assert blamed(batch, NOT_NEW) == (ErrorCode.INVALID_TIMESTAMP, [1])


def test_records_without_a_key_are_named_all() -> None:
    keys = (b"k", None, b"k", None)
    batch = batch_of(*((NOW_MS, key) for key in keys), compression=Compression.LZ4)
    assert blamed(batch, COMPACTED) == (ErrorCode.INVALID_RECORD, [1, 3])
    stamped = COMPACTED.with_overrides({"message.timestamp.type": "LogAppendTime"})
    assert blamed(batch, stamped) == (ErrorCode.INVALID_RECORD, [1, 3])


def test_no_answer_names_a_million_records() -> None:
    batch = batch_of(*([(NOW_MS, None)] * (MOST_NAMED + 5)), compression=Compression.ZSTD)
    assert blamed(batch, COMPACTED) == (ErrorCode.INVALID_RECORD, list(range(MOST_NAMED)))


@given(
    st.lists(
        st.tuples(
            st.sampled_from([NOW_MS, NOW_MS - HOUR_MS, NOW_MS - 60_000, NOW_MS - 60_001, -1]),
            st.sampled_from([b"k", None]),
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([DEFAULT, COMPACTED, NOT_OLD, STRICT]),
)
def test_exactly_the_records_that_break_a_rule_are_named(
    records: list[tuple[int, bytes | None]], config: LogConfig
) -> None:
    is_timed = config in (NOT_OLD, STRICT)
    untimely = {
        place
        for place, (time_ms, _) in enumerate(records)
        if is_timed and 0 <= time_ms < NOW_MS - 60_000
    }
    keyless = {place for place, (_, key) in enumerate(records) if config.compacts and key is None}
    error = ErrorCode.NONE
    if keyless or untimely:
        error = ErrorCode.INVALID_TIMESTAMP if untimely else ErrorCode.INVALID_RECORD
    code, places = blamed(batch_of(*records, compression=Compression.NONE), config)
    assert (code, set(places)) == (error, keyless | untimely)


def test_nobody_looks_at_records_of_an_ordinary_topic() -> None:
    assert record_rules(DEFAULT, NOW_MS) is None
    assert record_rules(NOT_NEW, NOW_MS) is None, "the header has the largest time"
