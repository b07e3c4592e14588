"""Parts of records of the map."""

from hypothesis import strategies as st

TOPICS = st.text(max_size=40)
INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(0, 2**63 - 1)
