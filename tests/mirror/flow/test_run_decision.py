"""Whether a flow may run."""

from mirror.flow.run_decision import Duty, Role, Witnessed, decide_duty, is_left, must_acknowledge
from runtime.coordination.witness import ActiveSite, FlowCommand
from runtime.coordination.zookeeper import SessionState

DC1 = ActiveSite(site="dc1", epoch=0)


def duty(
    session: SessionState = SessionState.CONNECTED,
    *,
    holds: bool = True,
    active: ActiveSite | None = DC1,
    command: FlowCommand | None = None,
    garbled: str | None = None,
    both: bool = False,
) -> Duty:
    witnessed = Witnessed(
        session=session,
        is_member=holds,
        active=active,
        command=command,
        garbled=garbled,
    )
    return decide_duty(witnessed, source="dc1", heeds_promotions=not both)


def test_where_both_sites_are_written_to_both_directions_run() -> None:
    stopped = FlowCommand(epoch=1, run=False)
    assert duty(active=ActiveSite(site="dc2", epoch=1), command=stopped, both=True).role is (
        Role.RUNNING
    )
    assert duty(SessionState.SUSPENDED, both=True).role is Role.HELD


def test_a_flow_without_a_command_runs_from_the_active_site() -> None:
    assert duty().role is Role.RUNNING


def test_a_flow_runs_on_while_its_source_is_being_left() -> None:
    assert duty(active=ActiveSite(site="dc1", epoch=0, moving_to="dc2")).role is Role.RUNNING


def test_a_flow_from_a_site_that_is_not_active_does_not_run() -> None:
    assert duty(active=ActiveSite(site="dc2", epoch=1)).role is Role.PAUSED


def test_a_command_stops_and_starts() -> None:
    assert duty(command=FlowCommand(epoch=1, run=False)).role is Role.PAUSED
    assert duty(command=FlowCommand(epoch=1, run=True)).role is Role.RUNNING


def test_a_source_is_left_once_its_flow_is_stopped_or_another_site_is_active() -> None:
    def left(active: ActiveSite | None, *, run: bool | None = None, both: bool = False) -> bool:
        command = None if run is None else FlowCommand(epoch=1, run=run)
        return is_left(active, command, source="dc1", heeds_promotions=not both)

    assert not left(DC1)
    assert not left(None)
    assert not left(DC1, run=True)
    assert left(DC1, run=False)
    assert left(ActiveSite(site="dc2", epoch=1))
    assert not left(ActiveSite(site="dc2", epoch=1), both=True)


def test_nothing_is_written_out_of_the_witness_reach() -> None:
    assert duty(SessionState.SUSPENDED).role is Role.HELD
    assert duty(SessionState.LOST).role is Role.NO_WITNESS
    assert duty(holds=False).role is Role.NO_WITNESS


def test_what_cannot_be_understood_stops_the_flow() -> None:
    assert duty(garbled="no valid command") == Duty(role=Role.PAUSED, reason="no valid command")
    assert duty(active=None).role is Role.PAUSED


def test_a_command_is_acknowledged_once_it_is_carried_out() -> None:
    stop, start = FlowCommand(epoch=1, run=False), FlowCommand(epoch=1, run=True)
    assert must_acknowledge(stop, None, Role.PAUSED)
    assert not must_acknowledge(stop, None, Role.RUNNING)
    assert not must_acknowledge(stop, stop, Role.PAUSED)
    assert must_acknowledge(start, stop, Role.RUNNING)
    assert not must_acknowledge(None, None, Role.RUNNING)
