"""The faults of a round, carried out beside a controller that stands still behind its steps."""

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Final

import yaml
from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from failover.journal.steps import ORDER, PromotionKind, StepName
from runtime.process.clock import wall_ms
from tests.drill.failover.applications import Applications
from tests.drill.failover.console import Console
from tests.drill.failover.planning import LOST, TAKEN_BACK, Fault, Round, What
from tests.drill.failover.stage import Controller, Stage
from tests.drill.failover.story import Said
from tests.drill.failover.subject import PATTERN_OF_SECOND, TOPIC
from tests.failover.two_sites import pause
from tests.readable import is_readable

CONTROLLER_S: Final = 100.0
STARTING_S: Final = 1.5
"""What a controller needs before its first step begins."""
ADMIN_S: Final = 10
SLOW_S: Final = 0.15
"""So long each piece of what goes to a slow site, or comes from it, is under way."""
SIGNALS: Final = {"KILL": signal.SIGKILL, "STOP": signal.SIGSTOP, "HANGUP": signal.SIGHUP}


@dataclass(slots=True, kw_only=True)
class Faulting:
    """One round's fault; `old` and `new` are the sites between which the round moves."""

    console: Console
    applications: Applications
    round: Round
    old: str
    new: str
    note_switches: Callable[[], object]
    """Keeps what the witness knows of promotions, before it forgets them."""
    made: list[str]
    deleted: set[str]
    opened: list[tuple[str, int, str]]
    """Idle sites that take writes from some time on, and why."""
    at_fault: Callable[[], None] | None = None
    """Done beside the fault."""
    is_done: bool = False
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4))
    _later: list[Future[None]] = field(default_factory=list)

    @property
    def stage(self) -> Stage:
        """Return what is hit."""
        return self.console.stage

    def promote(self, command: Sequence[str]) -> Said:
        """Run the promotion up to whatever end the fault has it come to."""
        began_ms = wall_ms()
        controller = self.console.controller(*command)
        try:
            text = self._accompany(controller)
        finally:
            status = controller.end()
        for one in self._later:
            one.result()
        self._threads.shutdown()
        return self.console.note(began_ms, command, status, text)

    def _accompany(self, controller: Controller) -> str:
        is_lost = self.round.what in LOST
        order = ORDER[PromotionKind.SOURCE_LOST if is_lost else PromotionKind.PLANNED]
        place = order.index(self.round.step)
        before = None if self.round.is_behind or place == 0 else order[place - 1]
        if not self.round.is_behind and before is None:
            pause(STARTING_S + self.round.delay_s)
            self._hit(controller)
        text, whole, deadline = "", 0, monotonic() + CONTROLLER_S
        descriptor = controller.output.fileno()
        while monotonic() < deadline:
            if not is_readable(descriptor, 0.5):
                continue
            chunk = os.read(descriptor, 65536)
            if not chunk:
                return text
            text += chunk.decode()
            while "\n" in text[whole:]:
                line, whole = text[whole : text.index("\n", whole)], text.index("\n", whole) + 1
                self._heed(controller, line, before)
        return f"{text}(killed by the drill after {CONTROLLER_S:g} s)\n"

    def _heed(self, controller: Controller, line: str, before: StepName | None) -> None:
        step = line.split(maxsplit=1)[0] if line.split() else ""
        if step not in {*StepName}:
            return
        if self.round.is_behind and step == self.round.step and not self.is_done:
            self._hit(controller)
        controller.release()
        if step == before and not self.is_done:
            pause(self.round.delay_s)
            self._hit(controller)

    def _after(self, act: Callable[[], None]) -> None:
        def later() -> None:
            pause(self.round.lasts_s)
            act()

        self._later.append(self._threads.submit(later))

    def _hit(self, controller: Controller) -> None:
        if self.round.endpoint is not None and self.stage.endpoints:
            endpoint = self.stage.endpoints[self.round.endpoint]
            endpoint.send(signal.SIGKILL)
            self._after(endpoint.ensure)
        if self.at_fault is not None:
            self.at_fault()
        if self.round.what is What.ABORT and self.round.fault is Fault.STOP_CONTROLLER:
            controller.send(signal.SIGSTOP)
            self.console.run("abort")  # a controller that wakes up behind it does nothing more
            controller.send(signal.SIGCONT)
        else:
            self._bring_about(controller)
            if self.round.what in TAKEN_BACK or self.round.what is What.LEFT:
                controller.send(signal.SIGKILL)  # others end what it leaves
        self.is_done = True

    def _bring_about(self, controller: Controller) -> None:
        fault = self.round.fault
        how, _, whom = fault.name.partition("_")
        if how in SIGNALS and whom:
            self._signal(controller, SIGNALS[how], whom)
            return
        acts: dict[Fault, Callable[[], object]] = {
            Fault.NOTHING: lambda: None,
            Fault.WIPE_WITNESS: partial(self._forget, controller, is_old_copy=False),
            Fault.OLD_WITNESS: partial(self._forget, controller, is_old_copy=True),
            Fault.MAKE_TOPIC: self._make_topic,
            Fault.GROW_TOPIC: self._grow_topic,
            Fault.DELETE_TOPIC: self._delete_topic,
            Fault.FOREIGN: self._write_without_mirror,
            Fault.OPEN_SOURCE: partial(self._open, self.old),
            Fault.OPEN_TARGET: partial(self._open, self.new),
            Fault.OTHER_FILE: self._other_file,
            Fault.SECOND_OPERATOR: self._second_operator,
            Fault.SLOW_SOURCE: partial(self._slow, self.old),
            Fault.SLOW_TARGET: partial(self._slow, self.new),
            Fault.CUT_SOURCE: partial(self._cut, self.old),
            Fault.CUT_TARGET: partial(self._cut, self.new),
        }
        acts[fault]()

    def _signal(self, controller: Controller, how: signal.Signals, whom: str) -> None:
        sends: dict[str, Callable[[signal.Signals], None]] = {
            "CONTROLLER": controller.send,
            "MIRROR": self.stage.mirror.send,
            "GUARD": self.stage.guard.send,
            "WITNESS": self.stage.witness.send,
            "SOURCE": partial(self.stage.signal_site, self.old),
            "TARGET": partial(self.stage.signal_site, self.new),
        }
        send = sends[whom]
        send(how)
        if whom == "CONTROLLER" and how is signal.SIGSTOP:
            pause(max(self.round.lasts_s, 6.0))
            send(signal.SIGCONT)
        elif how is signal.SIGSTOP:
            self._after(partial(send, signal.SIGCONT))
        elif whom != "CONTROLLER":
            self._after(partial(self._bring_back, whom))

    def _bring_back(self, whom: str) -> None:
        acts = {
            "MIRROR": self.stage.mirror.ensure,
            "GUARD": self.stage.guard.ensure,
            "WITNESS": self.stage.wake_witness,
        }
        if whom in acts:
            acts[whom]()
        else:
            self.stage.bring_site_back(self.old if whom == "SOURCE" else self.new)

    def _forget(self, controller: Controller, *, is_old_copy: bool) -> None:
        controller.send(signal.SIGSTOP)  # so that it does not switch in between
        self.note_switches()
        self.stage.forget_witness(is_old_copy=is_old_copy)
        controller.send(signal.SIGCONT)

    def _slow(self, site: str) -> None:
        """Have everybody wait for a site."""
        self.stage.network.slow(site, SLOW_S)
        self._after(partial(self.stage.network.slow, site, 0.0))

    def _cut(self, site: str) -> None:
        """Hold back what our programs and a site tell each other; it arrives late."""
        self.stage.network.cut(site)
        self._after(partial(self.stage.network.heal, site))

    def _open(self, site: str) -> None:
        """Have somebody lift a site's fence; what an idle site takes then has to be listed."""
        from_ms = wall_ms()
        fault = self.stage.open_by_hand(site)
        self.console.note(from_ms, ("open", site), 0, fault)
        self.opened.append((site, from_ms, "opened by hand"))
        pause(self.round.lasts_s)

    def _write_without_mirror(self) -> None:
        self.stage.mirror.end(signal.SIGKILL)
        self._open(self.new)
        self._after(self.stage.mirror.ensure)

    def _second_operator(self) -> None:
        lost = self.round.what in LOST
        more = ("--source-lost", "--accept-loss", "--force") if lost else ()

        def promote() -> None:
            self.console.run("promote", self.new, *more)

        self._later.append(self._threads.submit(promote))
        pause(self.round.lasts_s)

    def _other_file(self) -> None:
        other = self.stage.folder / "other.yaml"
        document = yaml.safe_load(self.stage.file.read_text())
        of_second = [PATTERN_OF_SECOND] if "sets" in document["failover"] else []
        for flow in document["flows"]:
            flow["topics"] = [TOPIC, *of_second]
        other.write_text(yaml.safe_dump(document))
        self.console.run("promote", self.new, file=other)

    # --- topics; what is refused, as by a fence, is refused ---

    def _admin(self) -> AdminClient:
        return AdminClient({**self.stage.clients[self.old], "log_level": 0})

    def _make_topic(self) -> None:
        topic = self.console.subject.made(self.round.number)
        with suppress(KafkaException):
            admin = self._admin()
            created = admin.create_topics([NewTopic(topic, 1, 1)], request_timeout=ADMIN_S)
            created[topic].result(2 * ADMIN_S)
            self.made.append(topic)
            self._write(topic)

    def _write(self, topic: str) -> None:
        settings: dict[str, Any] = {
            **self.stage.clients[self.old],
            "message.timeout.ms": 3_000,
            "log_level": 0,
        }
        producer = Producer(settings)
        sent_ms = wall_ms()

        def told(value: str, error: object, message: Message) -> None:
            if error is None:
                self.applications.note(sent_ms, value, "a writer of new topics", self.old, message)

        for number in range(5):
            value = f"{topic}-{number}-{sent_ms}"
            producer.produce(topic, value, b"k", 0, on_delivery=partial(told, value))
        producer.flush(ADMIN_S)

    def _grow_topic(self) -> None:
        if not self.made:
            self._make_topic()
            return
        topic = self.made[-1]
        with suppress(KafkaException):
            admin = self._admin()
            count = len(admin.list_topics(topic, timeout=ADMIN_S).topics[topic].partitions)
            wanted = [NewPartitions(topic, count + 1)]
            admin.create_partitions(wanted, request_timeout=ADMIN_S)[topic].result(ADMIN_S)
            self._write(topic)

    def _delete_topic(self) -> None:
        if not self.made:
            self._make_topic()
            return
        topic = self.made.pop(0)
        self.deleted.add(topic)
        with suppress(KafkaException):
            admin = self._admin()
            admin.delete_topics([topic], request_timeout=ADMIN_S)[topic].result(ADMIN_S)
