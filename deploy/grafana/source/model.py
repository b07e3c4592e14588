"""What a dashboard is made of, and its JSON as Grafana 10 and later read it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

SCHEMA_VERSION: Final = 39
COLUMNS: Final = 24
TAG: Final = "kafka-disaster-recovery"
SOURCE: Final[Mapping[str, str]] = MappingProxyType(
    {"type": "prometheus", "uid": "${datasource}"},
)


class PanelKind(StrEnum):
    """How a panel shows its series; Grafana's own names."""

    GRAPH = "timeseries"
    STAT = "stat"
    TABLE = "table"
    TIMELINE = "state-timeline"


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """PromQL, and what a series of it is called."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardPanel:
    """One panel."""

    title: str
    queries: tuple[PanelQuery, ...]
    kind: PanelKind = PanelKind.GRAPH
    unit: str = "short"
    """Grafana's id of a unit."""
    width: int = 8
    help: str = ""
    words: tuple[tuple[int, str, str], ...] = ()
    """A value, the word for it, and its colour."""
    bad_from: float | None = None
    """From this value on it is red."""
    empty: str = ""
    """Why it may have no data at all while all is well."""

    @property
    def height(self) -> int:
        """Rows of the grid."""
        return 4 if self.kind is PanelKind.STAT else 8


@dataclass(frozen=True, slots=True)
class DashboardRow:
    """Panels below a heading."""

    title: str
    panels: tuple[DashboardPanel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardVariable:
    """A choice above the panels: the values that a label has; all of them at first."""

    name: str
    """Also the label."""
    label: str
    of: str
    """The series whose label is asked for; may name variables before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """One dashboard."""

    uid: str
    title: str
    variables: tuple[DashboardVariable, ...]
    rows: tuple[DashboardRow, ...]

    def panels(self) -> Iterator[DashboardPanel]:
        """Yield all panels."""
        for row in self.rows:
            yield from row.panels

    def as_json(self) -> dict[str, Any]:
        """Return what Grafana imports."""
        return {
            "uid": self.uid,
            "title": self.title,
            "tags": [TAG],
            "timezone": "browser",
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"},
            "links": [_link()],
            "templating": {"list": [_datasource(), *map(_variable, self.variables)]},
            "annotations": {"list": [_annotation(*one) for one in ANNOTATIONS]},
            "panels": list(_grid(self.rows)),
        }


JOB: Final = DashboardVariable(name="job", label="Job", of="kafka_dr_build_info")
FLOW: Final = DashboardVariable(name="flow", label="Flow", of='mirror_role{job=~"$job"}')
SET: Final = DashboardVariable(name="set", label="Set", of='failover_role{job=~"$job"}')
SITE: Final = DashboardVariable(name="site", label="Site", of='failover_site_up{job=~"$job"}')

ANNOTATIONS: Final = (
    (
        "Promotions begun",
        'failover_last_promotion_start_timestamp_seconds{job=~"$job"} * 1000',
        "time",
        "{{kind}} promotion of {{site}} begun",
        "orange",
    ),
    (
        "Switches",
        'changes(failover_epoch{job=~"$job"}[$__interval]) > 0',
        "number",
        "the active site changed {{set}}",
        "red",
    ),
)
"""Name, query, whether its value is the time in ms or a number, what it says, and its colour."""


def series(metric: str, *labels: str) -> str:
    """Return a selector: of the chosen jobs, and of each label a variable's choice or a matcher."""
    matchers = [one if '"' in one else f'{one}=~"${one}"' for one in ("job", *labels)]
    return f"{metric}{{{','.join(matchers)}}}"


def rate(metric: str, *labels: str) -> str:
    """Return how fast a counter grows a second, over what Grafana finds right."""
    return f"rate({series(metric, *labels)}[$__rate_interval])"


def folded(how: str, by: str, metric: str, *labels: str) -> str:
    """Return a gauge with one value for each of ``by``: their "sum", "max" or "min"."""
    return f"{how} by ({by}) ({series(metric, *labels)})"


def speed(by: str, metric: str, *labels: str) -> str:
    """Return how fast counters grow a second, added up."""
    return f"sum by ({by}) ({rate(metric, *labels)})"


def moved(by: str, metric: str, *labels: str) -> str:
    """Return how fast offsets grow a second, added up; offsets are gauges and may go back."""
    return f"sum by ({by}) (deriv({series(metric, *labels)}[$__rate_interval]))"


def top(expr: str) -> str:
    """Return the 20 largest."""
    return f"topk(20, {expr})"


def quantiles(metric: str, by: str, *labels: str) -> tuple[PanelQuery, ...]:
    """Return the median and the 99th percentile of a histogram."""
    return tuple(
        PanelQuery(
            f"histogram_quantile({part}, sum by (le, {by}) ({rate(f'{metric}_bucket', *labels)}))",
            f"{name} {{{{{by}}}}}",
        )
        for part, name in ((0.5, "p50"), (0.99, "p99"))
    )


def _grid(rows: Sequence[DashboardRow]) -> Iterator[dict[str, Any]]:
    """Place panels from left to right, row by row."""
    number, y = 0, 0
    for row in rows:
        number += 1
        place = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": place,
            "panels": [],
        }
        x, y, height = 0, y + 1, 0
        for panel in row.panels:
            number += 1
            if x + panel.width > COLUMNS:
                x, y, height = 0, y + height, 0
            place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
            yield {"id": number, "gridPos": place, **_panel(panel)}
            x, height = x + panel.width, max(height, panel.height)
        y += height


def _panel(panel: DashboardPanel) -> dict[str, Any]:
    is_table = panel.kind is PanelKind.TABLE
    return {
        "type": panel.kind.value,
        "title": panel.title,
        "description": " ".join(part for part in (panel.help, _told_empty(panel)) if part),
        "datasource": dict(SOURCE),
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": dict(SOURCE),
                "expr": query.expr,
                "legendFormat": query.legend or "__auto",
                "instant": is_table,
                "range": not is_table,
                "format": "table" if is_table else "time_series",
            }
            for number, query in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _OPTIONS[panel.kind],
        "transformations": [_WITHOUT_TIME] if is_table else [],
    }


def _told_empty(panel: DashboardPanel) -> str:
    return f"Without data: {panel.empty}." if panel.empty else ""


def _defaults(panel: DashboardPanel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.bad_from is not None:
        steps.append({"color": "red", "value": panel.bad_from})
    words = {
        str(value): {"text": text, "color": color, "index": index}
        for index, (value, text, color) in enumerate(panel.words)
    }
    is_graph = panel.kind is PanelKind.GRAPH
    custom = {"lineWidth": 1, "fillOpacity": 8, "showPoints": "never", "spanNulls": False}
    return {
        "unit": panel.unit,
        "color": {"mode": "palette-classic" if is_graph else "thresholds"},
        "thresholds": {"mode": "absolute", "steps": steps},
        "mappings": [{"type": "value", "options": words}] if words else [],
        "custom": custom if is_graph else {},
    }


_LEGEND: Final = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
_REDUCED: Final = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_OPTIONS: Final[Mapping[PanelKind, dict[str, Any]]] = {
    PanelKind.GRAPH: {"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    PanelKind.STAT: {
        "reduceOptions": _REDUCED,
        "textMode": "value_and_name",
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
    },
    PanelKind.TABLE: {"showHeader": True, "cellHeight": "sm", "footer": {"show": False}},
    PanelKind.TIMELINE: {
        "legend": _LEGEND,
        "tooltip": {"mode": "single", "sort": "none"},
        "mergeValues": True,
        "showValue": "auto",
        "alignValue": "left",
        "rowHeight": 0.9,
    },
}
_WITHOUT_TIME: Final = {
    "id": "organize",
    "options": {
        "excludeByName": {"Time": True, "__name__": True, "job": True},
        "indexByName": {},
        "renameByName": {},
    },
}


def _link() -> dict[str, Any]:
    return {
        "type": "dashboards",
        "title": "Kafka disaster recovery",
        "tags": [TAG],
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }


def _datasource() -> dict[str, Any]:
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
        "current": {},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "regex": "",
        "skipUrlSync": False,
    }


def _variable(variable: DashboardVariable) -> dict[str, Any]:
    query = f"label_values({variable.of}, {variable.name})"
    return {
        "type": "query",
        "name": variable.name,
        "label": variable.label,
        "datasource": dict(SOURCE),
        "query": {"query": query, "refId": f"variable-{variable.name}"},
        "includeAll": True,
        "allValue": ".*",  # also a series without the label, as of a file without sets
        "multi": True,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "hide": 0,
        "options": [],
        "refresh": 2,
        "regex": "",
        "skipUrlSync": False,
        "sort": 1,
    }


def _annotation(name: str, expr: str, value_is: str, title: str, color: str) -> dict[str, Any]:
    return {
        "name": name,
        "datasource": dict(SOURCE),
        "enable": True,
        "hide": False,
        "iconColor": color,
        "expr": expr,
        "step": "15s",
        "titleFormat": title,
        "textFormat": "",
        "tagKeys": "set,site,kind,state",
        "useValueForTime": value_is == "time",
    }
