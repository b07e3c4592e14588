"""Which records a latency is taken from."""

from tests.bench.latency import percentiles
from tests.bench.steady import Stream


def stream() -> Stream:
    """Ten records, one a second; those of the second half took ten times as long."""
    found = Stream(record_bytes=10, sent_at=[float(number) for number in range(10)])
    found.seen = [(number, number + (0.01 if number < 5 else 0.1)) for number in range(10)]
    return found


def test_records_sent_while_neighbours_were_there_do_not_count() -> None:
    found = percentiles(stream(), range(10), [(0.0, 4.5)])
    assert (round(found.p50), round(found.p99)) == (10, 10)


def test_all_count_where_too_few_would_be_left() -> None:
    found = percentiles(stream(), range(10), [(0.0, 0.2)])
    assert (round(found.p50), round(found.p99)) == (10, 100)
