"""The runs of plain Produce requests in what one connection receives."""

from broker.framing import FrameBuffer
from wire.hot.produce_run import MOST_REQUESTS, ProduceRun
from wire.kernel.chosen import ReadRun
from wire.messages.produce import ProduceRequest


class ProduceRuns:
    """Looks for runs where the last request was a Produce; reads none twice."""

    def __init__(self, frames: FrameBuffer, read_run: ReadRun) -> None:
        self._frames = frames
        self._read_run = read_run
        self._is_likely = False
        self._one_by_one = 0

    def next(self, most_requests: int) -> tuple[memoryview, ProduceRun] | None:
        """Return the run that is next with the buffer that it lies in; None if there is none.

        `take` or `leave` comes next, before anything else is received.
        """
        if not self._is_likely or self._one_by_one or self._frames.is_empty:
            return None
        view, start, end = self._frames.held()
        most = min(most_requests, MOST_REQUESTS)
        run = self._read_run(view, start, end, self._frames.largest_frame, most)
        return None if run is None else (view, run)

    def take(self, run: ProduceRun) -> None:
        """Go on behind a run."""
        self._frames.pass_over(run.end)

    def leave(self, run: ProduceRun) -> None:
        """Have the requests of a run handled one by one."""
        self._one_by_one = len(run.requests)

    def handled(self, api_key: int) -> None:
        """Note that a request was handled by itself."""
        self._one_by_one = max(0, self._one_by_one - 1)
        self._is_likely = api_key == ProduceRequest.API_KEY
