"""Each alert fires when it should and is silent otherwise, as Prometheus' own promtool finds.

`make test` has it out of the system's package where it is not on the PATH (tests/deploy/promtool).
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.deploy.promtool import find_promtool

ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
ROOT: Final = ALERTS.parents[2]
RUNBOOKS: Final = ROOT / "docs" / "runbooks"
PROMTOOL: Final = find_promtool()
ALL_THE_TIME: Final = "x460"
"""More than an hour of samples, 15 s apart; of a case of hours, more than a day."""
LONG_MINUTES: Final = 9

FLOW: Final = 'flow="dc1->dc2",instance="m"'
BACK: Final = 'flow="dc2->dc1",instance="m"'
PLACE: Final = f'{FLOW},topic="t",partition="0"'
RUNNING: Final = f'mirror_role{{{FLOW},role="running"}}'
PAUSED: Final = f'mirror_role{{{FLOW},role="paused"}}'
STARTS: Final = f'mirror_fault{{{FLOW},part="start"}}'
STREAMING: Final = f'mirror_partitions{{{FLOW},state="streaming"}}'
LAG: Final = f"mirror_lag_seconds{{{PLACE}}}"
UNKNOWN: Final = f"mirror_unknown_lag_partitions{{{FLOW}}}"
UP: Final = 'up{job="kafka",instance="m"}'
AUDITED_PART: Final = 'audit_offsets{flow="dc1->dc2",side="source",share="compared",instance="a"}'
PRODUCE: Final = f'mirror_produce_errors_total{{{FLOW},error="NOT_LEADER_OR_FOLLOWER"}}'
FETCH: Final = f'mirror_fetch_errors_total{{{FLOW},error="KAFKA_STORAGE_ERROR"}}'
GROUPS: Final = f'mirror_group_commit_errors_total{{{FLOW},error="REQUEST_TIMED_OUT"}}'
AUDITED: Final = 'audit_last_run_timestamp_seconds{instance="a"}'
READY: Final = 'failover_ready{site="dc2",reason="",instance="f"}'
BEHIND_IS_WHY: Final = 'failover_ready{site="dc2",reason="behind",instance="f"}'
CHECKED: Final = 'failover_ready_checked_timestamp_seconds{instance="f"}'
CANARY_LOST: Final = 'failover_canary_lost_total{flow="dc1->dc2",instance="f"}'
CANARY_OLDEST: Final = 'failover_canary_oldest_seconds{flow="dc1->dc2",instance="f"}'
REHEARSED: Final = 'failover_rehearsal_result{site="dc2",result="passed",instance="f"}'
PASSED_AT: Final = 'failover_rehearsal_passed_timestamp_seconds{instance="f"}'
STALE_AFTER: Final = 'failover_rehearsal_stale_after_seconds{instance="f"}'
GONE: Final = None

WELL: Final[Mapping[str, str | None]] = {
    RUNNING: "1",
    PAUSED: "0",
    f'mirror_role{{{FLOW},role="not authorised"}}': "0",
    f'mirror_role{{{BACK},role="running"}}': "0",
    f'mirror_role{{{BACK},role="paused"}}': "1",
    f'mirror_role{{{FLOW},role="no witness"}}': "0",
    STARTS: "0",
    f'mirror_fault{{{FLOW},part="discovery"}}': "0",
    STREAMING: "7",
    UNKNOWN: "0",
    UP: "1",
    'kafka_dr_build_info{job="kafka",instance="m",program="mirror",version="1"}': "1",
    LAG: "0",
    f"mirror_lag_records{{{PLACE}}}": "0",
    f"mirror_lost_records{{{PLACE}}}": "0",
    'failover_witness_up{instance="f"}': "1",
    'failover_role{site="dc1",instance="f"}': "1",
    'failover_role{site="dc2",instance="f"}': "0",
    'failover_site_up{site="dc1",instance="f"}': "1",
    'failover_site_up{site="dc2",instance="f"}': "1",
    'failover_fenced_topics{site="dc1",instance="f"}': "0",
    'failover_fenced_topics{site="dc2",instance="f"}': "2",
    'failover_flow_runs{flow="dc1->dc2",instance="f"}': "1",
    'failover_flow_runs{flow="dc2->dc1",instance="f"}': "1",
    'failover_unfinished{instance="f"}': "0",
    READY: "1",
    CHECKED: f"0+300{ALL_THE_TIME}",
    CANARY_LOST: "0",
    CANARY_OLDEST: "0.2",
    REHEARSED: "1",
    PASSED_AT: "0",
    STALE_AFTER: "172800",
    'audit_verdict{verdict="clean",instance="a"}': "1",
    'audit_verdict{verdict="findings",instance="a"}': "0",
    'audit_verdict{verdict="unknown",instance="a"}': "0",
    AUDITED: "0",
    AUDITED_PART: "9",
    'broker_offline_partitions{job="dc1"}': "0",
    'broker_offline_log_folders{job="dc1"}': "0",
}
"""dc1 is active and mirrored to dc2; the way back rests, dc2 is fenced."""


def without(prefix: str) -> dict[str, str | None]:
    """Return what is missing when a program is down."""
    return {series: GONE for series in WELL if series.startswith(prefix)}


def in_state(state: str) -> dict[str, str | None]:
    """Return two partitions that are in another state."""
    return {STREAMING: "5", f'mirror_partitions{{{FLOW},state="{state}"}}': "2"}


NO_PARTITION: Final = {series: GONE for series in WELL if PLACE in series}
UNREACHED: Final = {**without("failover_"), 'failover_witness_up{instance="f"}': "0"}
FENCED: Final = {'failover_fenced_topics{site="dc1",instance="f"}': "3"}
UNFINISHED: Final = {'failover_unfinished{instance="f"}': "1"}
SECOND_GUARD: Final[dict[str, str | None]] = {
    series.replace('instance="f"', 'instance="g"'): value
    for series, value in WELL.items()
    if series.startswith("failover_")
}
SWITCHED: Final = {
    'failover_role{site="dc1",instance="f"}': "0",
    'failover_role{site="dc2",instance="f"}': "1",
    'failover_fenced_topics{site="dc1",instance="f"}': "2",
    'failover_fenced_topics{site="dc2",instance="f"}': "0",
}
BACK_ENDS: Final = {
    f'mirror_role{{{BACK},role="running"}}': GONE,
    f'mirror_role{{{BACK},role="paused"}}': "1x1",
}
BEHIND: Final = f"mirror_lag_records{{{PLACE}}}"


def of_sets(active: Mapping[str, str]) -> dict[str, str | None]:
    """Return what `failover serve` and the mirror show where each set is active on a site."""
    shown: dict[str, str | None] = {
        series: GONE for series in WELL if series.startswith("failover_") and "up" not in series
    }
    shown[RUNNING] = GONE
    for name, site in active.items():
        of_set = f'set="{name}",instance="f"'
        prefix = "" if name == "default" else f"{name}:"
        other = "dc2" if site == "dc1" else "dc1"
        shown |= {
            f'failover_role{{site="{site}",{of_set}}}': "1",
            f'failover_role{{site="{other}",{of_set}}}': "0",
            f'failover_fenced_topics{{site="{site}",{of_set}}}': "0",
            f'failover_fenced_topics{{site="{other}",{of_set}}}': "2",
            f"failover_unfinished{{{of_set}}}": "0",
            f'failover_ready{{site="{other}",reason="",{of_set}}}': "1",
            f"failover_ready_checked_timestamp_seconds{{{of_set}}}": f"0+300{ALL_THE_TIME}",
            f'mirror_role{{flow="{prefix}{site}->{other}",instance="m",role="running"}}': "1",
        }
    return shown


TWO_SETS: Final = of_sets({"default": "dc1", "payments": "dc2"})


def evaluated_every(after: str) -> str:
    """Return how often rules are evaluated in a case that looks after so long.

    promtool takes 6 ms of processor time for all rules at one time of a case.
    """
    number, unit = int(after[:-1]), after[-1]
    if unit == "h":
        return "5m"
    return "1m" if unit == "m" and number >= LONG_MINUTES else "15s"


Case = tuple[str, Mapping[str, str | None], str, set[str]]
CASES: Final[tuple[Case, ...]] = (
    ("all is well", {}, "70m", set()),
    ("no mirror", without("mirror_"), "2m", {"MirrorDown"}),
    ("no mirror for long", without("mirror_"), "12m", {"MirrorDown", "ActiveSiteUnprotected"}),
    (
        "one of two flows has no daemon any more",
        {
            f'mirror_role{{{BACK},role="running"}}': GONE,
            f'mirror_role{{{BACK},role="paused"}}': "1x1",
        },
        "10m",
        {"MirrorFlowDown"},
    ),
    (
        "another daemon has the flow",
        {**BACK_ENDS, 'mirror_role{flow="dc2->dc1",instance="n",role="paused"}': "_x1 1x300"},
        "10m",
        set(),
    ),
    (
        "a flow was taken out a day ago",
        {f'mirror_role{{{BACK},role="paused"}}': "1x1"},
        "26h",
        set(),
    ),
    ("a program does not answer for a while", {UP: "1 0x300"}, "5m", set()),
    ("a program does not answer", {UP: "1 0x300"}, "10m", {"ProgramDown"}),
    ("what never was ours does not answer", {'up{job="x",instance="x"}': "0"}, "30m", set()),
    ("the flow is paused", {RUNNING: "0"}, "9m", set()),
    ("it stays so, a way back rests", {RUNNING: "0"}, "11m", {"ActiveSiteUnprotected"}),
    ("only the way back has a daemon", {RUNNING: GONE}, "11m", {"ActiveSiteUnprotected"}),
    ("a one-way setup was switched", SWITCHED, "11m", {"ActiveSiteUnprotected"}),
    (
        "credentials are refused",
        {RUNNING: "0", f'mirror_role{{{FLOW},role="not authorised"}}': "1"},
        "11m",
        {"MirrorNotAuthorised"},
    ),
    (
        "it cannot start without them either",
        {RUNNING: "0", f'mirror_role{{{FLOW},role="not authorised"}}': "1", STARTS: "1"},
        "5m",
        {"MirrorNotAuthorised"},
    ),
    ("a cluster is away when it starts", {**NO_PARTITION, STARTS: "1"}, "1m", set()),
    ("it stays away", {**NO_PARTITION, STARTS: "1"}, "70m", {"MirrorStandsStill"}),
    (
        "the witness is out of the mirror's reach alone",
        {**NO_PARTITION, RUNNING: "0", f'mirror_role{{{FLOW},role="no witness"}}': "1"},
        "3m",
        {"MirrorStandsStill"},
    ),
    (
        "new topics cannot be looked for",
        {f'mirror_fault{{{FLOW},part="discovery"}}': "1"},
        "6m",
        {"MirrorPartFails"},
    ),
    (
        "others write to a map",
        {'mirror_unbelieved_records{flow="dc1->dc2",topic="m",instance="m"}': "1"},
        "1m",
        {"MirrorUnbelievedRecords"},
    ),
    ("a partition stopped", in_state("source went back"), "1m", {"MirrorPartitionStopped"}),
    ("a partition is paused", in_state("paused"), "30m", set()),
    ("a partition waits shortly", in_state("waiting"), "1m", set()),
    ("a partition waits", in_state("waiting"), "3m", {"MirrorPartitionWaiting"}),
    (
        "a setting is refused",
        {'mirror_refused_topic_setting{flow="dc1->dc2",topic="t",setting="s"}': "1"},
        "11m",
        {"MirrorSettingRefused"},
    ),
    ("lag within the objective", {LAG: "30"}, "30m", set()),
    ("lag beyond the objective", {LAG: "31"}, "2m", {"RecoveryPointExceeded"}),
    ("lag unknown while it starts", {LAG: GONE, UNKNOWN: "7"}, "4m", set()),
    ("lag unknown for long", {LAG: GONE, UNKNOWN: "7"}, "6m", {"RecoveryPointUnknown"}),
    ("lag unknown of one in seven", {UNKNOWN: "1"}, "6m", {"RecoveryPointUnknown"}),
    ("lag unknown of a flow that rests", {LAG: GONE, UNKNOWN: "7", PAUSED: "1"}, "6m", set()),
    ("lag grows", {BEHIND: f"10000+100{ALL_THE_TIME}"}, "20m", {"MirrorLagGrowing"}),
    ("lag shrinks", {BEHIND: f"900000-50{ALL_THE_TIME}"}, "20m", set()),
    ("records were lost", {f"mirror_lost_records{{{PLACE}}}": "7"}, "1m", {"MirrorLostRecords"}),
    ("few errors", {PRODUCE: f"0+1{ALL_THE_TIME}"}, "20m", set()),
    ("produce is refused", {PRODUCE: f"0+9{ALL_THE_TIME}"}, "20m", {"MirrorErrors"}),
    ("fetch is refused", {FETCH: f"0+9{ALL_THE_TIME}"}, "20m", {"MirrorErrors"}),
    (
        "both, for different reasons",
        {PRODUCE: f"0+9{ALL_THE_TIME}", FETCH: f"0+9{ALL_THE_TIME}"},
        "20m",
        {"MirrorErrors", "MirrorErrors "},
    ),
    ("group positions are refused", {GROUPS: f"0+9{ALL_THE_TIME}"}, "20m", {"MirrorErrors"}),
    ("no failover serve", without("failover_"), "2m", {"FailoverServeDown"}),
    ("the witness is away", UNREACHED, "1m", {"WitnessDown"}),
    (
        "the clusters contradict the witness",
        {'failover_pair_contradicted{instance="f"}': "1"},
        "1m",
        {"WitnessContradicted"},
    ),
    (
        "a site is away",
        {
            'failover_site_up{site="dc2",instance="f"}': "0",
            'failover_fenced_topics{site="dc2",instance="f"}': GONE,
        },
        "1m",
        {"SiteDown"},
    ),
    ("a promotion is under way", {**FENCED, **UNFINISHED}, "90s", set()),
    ("a promotion is stuck", {**FENCED, **UNFINISHED}, "3m", {"PromotionUnfinished"}),
    ("a site could not be promoted for a while", {READY: GONE, BEHIND_IS_WHY: "0"}, "14m", set()),
    (
        "a site could not be promoted",
        {READY: GONE, BEHIND_IS_WHY: "0"},
        "17m",
        {"FailoverNotReady"},
    ),
    (
        "a promotion is why it could not",
        {READY: GONE, BEHIND_IS_WHY: "0", **UNFINISHED},
        "1m",
        set(),
    ),
    ("nobody can look whether it could", {CHECKED: "0"}, "20m", {"FailoverReadinessUnknown"}),
    (
        "a voter does not vote",
        {'failover_automatic_vote{voter="c",place="office",sees="missing",instance="f"}': "1"},
        "6m",
        {"FailoverVoterMissing"},
    ),
    (
        "what voters agree on is refused",
        {'failover_automatic_in_the_way{reason="refused",instance="f"}': "1"},
        "1m",
        {"FailoverAutomaticRefused"},
    ),
    ("a canary's record is lost", {CANARY_LOST: "0 0 0 1x300"}, "10m", {"CanaryLost"}),
    ("a canary's record is late", {CANARY_OLDEST: "31"}, "3m", {"CanaryLate"}),
    (
        "a rehearsal has failed",
        {REHEARSED: GONE, REHEARSED.replace("passed", "failed"): "1"},
        "2m",
        {"RehearsalNotPassed"},
    ),
    ("no rehearsal has passed for long", {STALE_AFTER: "60"}, "62m", {"RehearsalTooOld"}),
    ("no rehearsal has ever passed", {PASSED_AT: GONE}, "62m", {"RehearsalTooOld"}),
    (
        "no rehearsal is asked for",
        {REHEARSED: GONE, PASSED_AT: GONE, STALE_AFTER: GONE},
        "62m",
        set(),
    ),
    ("the active site is fenced", FENCED, "2m", {"ActiveSiteFenced"}),
    ("sets are active on both sites", TWO_SETS, "20m", set()),
    (
        "one set is fenced where it is active, and one that is moved elsewhere",
        {
            **TWO_SETS,
            'failover_fenced_topics{site="dc2",set="payments",instance="f"}': "1",
            'failover_unfinished{set="default",instance="f"}': "1",
        },
        "2m",
        {"ActiveSiteFenced", "PromotionUnfinished"},
    ),
    (
        "one set's flow rests",
        {**TWO_SETS, 'mirror_role{flow="payments:dc2->dc1",instance="m",role="running"}': "0"},
        "11m",
        {"ActiveSiteUnprotected"},
    ),
    (
        "one set is active nowhere",
        {**TWO_SETS, 'failover_role{site="dc2",set="payments",instance="f"}': "0"},
        "2m",
        {"NotOneActiveSite"},
    ),
    (
        "no site is active",
        {'failover_role{site="dc1",instance="f"}': "0"},
        "2m",
        {"NotOneActiveSite"},
    ),
    ("two serve", SECOND_GUARD, "2m", set()),
    (
        "two serve and one says otherwise",
        {
            **SECOND_GUARD,
            'failover_role{site="dc1",instance="g"}': "0",
            'failover_role{site="dc2",instance="g"}': "1",
            'failover_fenced_topics{site="dc2",instance="f"}': "0",
            'failover_fenced_topics{site="dc2",instance="g"}': "0",
        },
        "2m",
        {"NotOneActiveSite"},
    ),
    (
        "the audit has findings",
        {
            'audit_verdict{verdict="clean",instance="a"}': "0",
            'audit_verdict{verdict="findings",instance="a"}': "1",
        },
        "1m",
        {"AuditFindings"},
    ),
    (
        "the audit could not tell",
        {
            'audit_verdict{verdict="clean",instance="a"}': "0",
            'audit_verdict{verdict="unknown",instance="a"}': "1",
        },
        "1m",
        {"AuditCouldNotTell"},
    ),
    (
        "the audit left a part out",
        {'audit_offsets{flow="dc1->dc2",side="source",share="not compared"}': "5"},
        "1m",
        {"AuditNotCovered"},
    ),
    (
        "a batch is corrupt",
        {'audit_offsets{flow="dc1->dc2",side="target",share="corrupt or missing"}': "5"},
        "1m",
        {"AuditCorrupt"},
    ),
    (
        "a group would skip records",
        {'audit_positions{flow="dc1->dc2",standing="too far"}': "1"},
        "1m",
        {"AuditPositionsTooFar"},
    ),
    (
        "records wait for too long",
        {'audit_findings{flow="dc1->dc2",kind="overdue"}': "5"},
        "1m",
        {"AuditOverdue"},
    ),
    ("the audit is a day old", {AUDITED: f"-{24 * 3600}"}, "1m", set()),
    (
        "audits look at some topics only",
        {"audit_topics_asked_for": "2", AUDITED: f"0+300{ALL_THE_TIME}"},
        "37h",
        {"AuditOfSomeTopics"},
    ),
    (
        "the audit does not know of a flow",
        {AUDITED_PART: GONE, AUDITED: f"0+300{ALL_THE_TIME}"},
        "37h",
        {"AuditLacksFlow"},
    ),
    ("the audit is old", {AUDITED: f"-{37 * 3600}"}, "1m", {"AuditTooOld"}),
    ("the audit is of the future", {AUDITED: f"{37 * 3600}"}, "1m", {"AuditTooOld"}),
    ("no audit is stored or served", without("audit_"), "62m", {"AuditUnknown"}),
    (
        "partitions are offline",
        {'broker_offline_partitions{job="dc1"}': "2"},
        "2m",
        {"BrokerOfflinePartitions"},
    ),
    (
        "a log folder is offline",
        {'broker_offline_log_folders{job="dc1"}': "1"},
        "1m",
        {"BrokerLogFolderOffline"},
    ),
)


def as_promtool_reads_it(case: Case) -> dict[str, object]:
    """Return a case in the form of `promtool test rules`: what fires then, and nothing else."""
    name, changes, after, firing = case
    series = {**WELL, **changes}
    counts: dict[str, int] = {}
    for alert in firing:
        counts[alert.strip()] = counts.get(alert.strip(), 0) + 1
    return {
        "name": name,
        "interval": evaluated_every(after),
        "input_series": [
            {
                "series": series_name,
                "values": value if "x" in value else f"{value}{ALL_THE_TIME}",
            }
            for series_name, value in series.items()
            if value is not None
        ],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": after,
                "exp_samples": [
                    {"labels": f'{{alertname="{alert}"}}', "value": count}
                    for alert, count in sorted(counts.items())
                ],
            }
        ],
    }


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    return list(group["rules"])


def test_every_alert_is_tried() -> None:
    tried = {alert.strip() for *_, firing in CASES for alert in firing}
    assert {rule["alert"] for rule in rules()} == tried


def test_every_alert_leads_to_its_heading_in_a_runbook() -> None:
    for rule in rules():
        name, url = rule["alert"], rule["annotations"]["runbook_url"]
        page, _, anchor = url.partition("#")
        assert (ROOT / page).parent == RUNBOOKS
        assert anchor == name.lower(), name
        assert f"\n### {name}\n" in (ROOT / page).read_text(), name


def test_alerts_lead_to_where_the_site_is_served(tmp_path: Path) -> None:
    served = tmp_path / "alerts.yml"
    command = ["make", "-s", "alerts", f"ALERTS={served}"]
    subprocess.run([*command, "DOCS=https://docs.internal/dr/"], cwd=ROOT, check=True)
    [group] = yaml.safe_load(served.read_text())["groups"]
    for rule, linked in zip(rules(), group["rules"], strict=True):
        page, _, anchor = rule["annotations"].pop("runbook_url").partition("#")
        url = f"https://docs.internal/dr/runbooks/{Path(page).stem}.html#{anchor}"
        assert linked["annotations"].pop("runbook_url") == url
        assert linked == rule, "nothing else changes"
    nowhere = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert nowhere.returncode != 0
    assert "DOCS=https://" in nowhere.stderr


def test_every_heading_of_an_alert_is_one_of_an_alert() -> None:
    headings = {
        line.removeprefix("### ")
        for page in RUNBOOKS.glob("*.md")
        for line in page.read_text().splitlines()
        if line.startswith("### ")
    }
    assert headings == {rule["alert"] for rule in rules()}


@pytest.mark.skipif(PROMTOOL is None, reason="promtool, which comes with Prometheus, is not here")
@pytest.mark.parametrize("every", ["15s", "1m", pytest.param("5m", marks=pytest.mark.story)])
def test_what_fires_is_what_should(tmp_path: Path, every: str) -> None:
    cases = tmp_path / "cases.yml"
    document = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": every,
        "tests": [
            as_promtool_reads_it(case) for case in CASES if evaluated_every(case[2]) == every
        ],
    }
    cases.write_text(json.dumps(document))  # which is YAML, and written sooner
    assert PROMTOOL is not None
    ran = subprocess.run(
        [PROMTOOL, "test", "rules", str(cases)],
        env={**os.environ, "GOGC": "400"},  # to free memory takes it a sixth of its time
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
