"""What can be read of descriptors with high numbers, too."""

import fcntl
import os

from tests.readable import is_readable

BEYOND_SELECT = 1_500


def test_a_descriptor_beyond_what_select_takes_is_waited_for() -> None:
    reading, writing = os.pipe()
    high = fcntl.fcntl(reading, fcntl.F_DUPFD, BEYOND_SELECT)
    try:
        assert not is_readable(high, 0)
        os.write(writing, b"x")
        assert is_readable(high, None)
    finally:
        for one in (reading, writing, high):
            os.close(one)
