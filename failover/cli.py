"""The command line of `failover`: what there is to type, and what each command loads and calls."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from runtime.program.choosing import LISTS_ALL, TOPIC, not_negative
from runtime.program.command import Act, Command, Completes, Option, Options, Word
from runtime.program.program import ExitStatus, Faults, Program

SITE: Final = Word(
    name="site", metavar="SITE", help="the site to make active, named as in the configuration"
)
HOW: Final = (
    Option(
        names=("--source-lost",),
        help="the active site is gone: give up the records of it that were not mirrored",
    ),
    Option(
        names=("--force",),
        help="go on although a topic has more partitions on SITE, a group has members there, or"
        " members of one would stay on the active site;"
        " with --source-lost: although the active site answers, or the mirror runs another file",
    ),
    Option(
        names=("--accept-loss",),
        help="with --source-lost: lose more than `failover.loss_budget` allows, or nobody knows how"
        " much",
    ),
    Option(names=("--without-hooks",), help="call no hook"),
    Option(
        names=("--despite-hold",), help="go on although somebody holds promotions: `failover hold`"
    ),
)
WHICH: Final = (
    Option(
        names=("--set",),
        metavar="NAME",
        help="the set of topics to move; with `failover.sets` in the file this or one of the next"
        " two is needed",
        group="which",
    ),
    Option(
        names=("--topics",),
        metavar="PATTERN",
        help="move the sets whose topics are together just those whose whole names match this"
        " regular expression",
        group="which",
    ),
    Option(
        names=("--all",),
        help="move every set that is not active on SITE, one after the other",
        group="which",
    ),
)
JSON: Final = Option(names=("--json",), help="print JSON instead of text")


def _promote() -> Act:
    from failover.commands.promotion import promote
    from failover.commands.running import stop_at_signals

    return lambda options: stop_at_signals(promote, options)


def _rehearse() -> Act:
    from failover.commands.rehearsal import rehearse_site
    from failover.commands.running import stop_at_signals

    return lambda options: stop_at_signals(rehearse_site, options)


def _plan() -> Act:
    from failover.commands.promotion import plan
    from failover.commands.running import stop_at_signals

    return lambda options: stop_at_signals(plan, options)


def _abort() -> Act:
    from failover.commands.promotion import abort
    from failover.commands.running import stop_at_signals

    return lambda options: stop_at_signals(abort, options)


def _hold() -> Act:
    from failover.commands.holds import hold
    from failover.commands.running import stop_at_signals

    return lambda options: stop_at_signals(hold, options)


def _release() -> Act:
    from failover.commands.holds import release
    from failover.commands.running import stop_at_signals

    return lambda options: stop_at_signals(release, options)


def _status() -> Act:
    from failover.commands.running import stop_at_signals
    from failover.commands.status import status

    return lambda options: stop_at_signals(status, options)


def _history() -> Act:
    from failover.commands.journals import history
    from failover.commands.running import stop_at_signals

    return lambda options: stop_at_signals(history, options)


def _report() -> Act:
    from failover.commands.journals import report
    from failover.commands.running import stop_at_signals

    return lambda options: stop_at_signals(report, options)


def _divergence() -> Act:
    from failover.commands.divergence import divergence
    from failover.commands.running import stop_at_signals

    return lambda options: stop_at_signals(divergence, options)


def _recover() -> Act:
    from failover.commands.running import stop_at_signals
    from failover.commands.witness import recover_witness

    return lambda options: stop_at_signals(recover_witness, options)


def _secure() -> Act:
    from failover.commands.running import stop_at_signals
    from failover.commands.witness import secure_witness

    return lambda options: stop_at_signals(secure_witness, options)


def _adopt() -> Act:
    from failover.commands.running import stop_at_signals
    from failover.commands.witness import adopt_sets

    return lambda options: stop_at_signals(adopt_sets, options)


def _serve() -> Act:
    from failover.commands.running import stop_at_signals
    from failover.serve.program import serve

    async def serve_metrics(options: Options) -> int:
        await serve(options.configuration, options.voter)
        return ExitStatus.DONE

    return lambda options: stop_at_signals(serve_metrics, options)


def _bootstrap() -> Act:
    from failover.bootstrap.endpoint import serve_bootstrap
    from failover.commands.running import stop_at_signals

    async def serve(options: Options) -> int:
        await serve_bootstrap(options.configuration)
        return ExitStatus.DONE

    return lambda options: stop_at_signals(serve, options)


def _faults() -> Faults:
    from failover.adopt import CannotAdopt
    from failover.automatic.hold import BadReason
    from failover.journal.execute import RollbackStuck, StepFailed
    from failover.journal.journal import JournalUnreadable
    from failover.journal.lease import LeaseHeld, LeaseLost
    from failover.journal.store import Superseded
    from failover.promote import PromotionRefused
    from failover.rehearsal.kept import RehearsalRuns
    from failover.rehearsal.obstacles import CannotRehearse
    from failover.rehearsal.outcome import RehearsalUnreadable
    from failover.secure import CannotSecure
    from failover.sites.unknown_writers import CannotRecover
    from runtime.configuration.config import ConfigurationError
    from runtime.coordination.map_writers import WritersUnknown
    from runtime.coordination.witness import WitnessGarbled
    from runtime.coordination.zookeeper import ZooKeeperFault
    from runtime.pages.metrics import AddressInUse
    from runtime.pair.opening import PairContradicted, PairUnknown
    from runtime.program.agreement import NotAgreed

    refused = (
        ConfigurationError,
        PromotionRefused,
        CannotRehearse,
        RehearsalRuns,
        RehearsalUnreadable,
        BadReason,
        LeaseHeld,
        JournalUnreadable,
        WitnessGarbled,
        ZooKeeperFault,
        AddressInUse,
        PairContradicted,
        PairUnknown,
        CannotRecover,
        CannotAdopt,
        CannotSecure,
        WritersUnknown,
    )
    failed = (RollbackStuck, StepFailed, LeaseLost, Superseded, NotAgreed)
    return {
        **dict.fromkeys(refused, ExitStatus.BAD_INPUT),
        **dict.fromkeys(failed, ExitStatus.FAILED),
    }


PROGRAM: Final = Program(
    name="failover",
    description="Move applications from one site to the other, step by step.",
    commands=(
        Command(
            name="promote",
            help="Make a site the active one, or resume its unfinished promotion.",
            details="On a terminal the plan is shown and asked about first. A promotion is written "
            "down step by step in the witness; after a crash or a signal the same command resumes "
            "it. Records are given up only with --source-lost.",
            load=_promote,
            examples=(
                "failover promote dc2 dc.yaml",
                "failover promote dc2 --source-lost --config dc.yaml",
            ),
            words=(SITE,),
            options=(
                *WHICH,
                *HOW,
                Option(
                    names=("--yes",),
                    help="do not ask; nobody is asked either where there is no terminal",
                ),
                Option(
                    names=("--json",),
                    help="print the report as JSON at the end, and all else on standard error",
                ),
            ),
            reads_configuration=True,
        ),
        Command(
            name="plan",
            help="Show what promote would do, and change nothing.",
            load=_plan,
            examples=("failover plan dc2 dc.yaml", "failover plan dc2 --source-lost dc.yaml"),
            words=(SITE,),
            options=(
                *WHICH,
                *HOW,
                Option(
                    names=("--lag-over",),
                    metavar="N",
                    convert=not_negative,
                    help="name each topic of which more than N records are not mirrored yet",
                ),
                JSON,
            ),
            reads_configuration=True,
        ),
        Command(
            name="rehearse",
            help="Promote and take back a set of topics that no application uses, under load.",
            details="Needs `failover.rehearsal` in the file. What applications use stays as it is. "
            "What is left of a rehearsal that died is taken back first. The status is 1 where "
            "anything was lost, doubled or read again, or where the set could not be moved.",
            load=_rehearse,
            examples=("failover rehearse dc2 dc.yaml", "failover rehearse dc2 --json dc.yaml"),
            words=(SITE,),
            options=(JSON,),
            reads_configuration=True,
        ),
        Command(
            name="abort",
            help="Take back a promotion that was not finished.",
            load=_abort,
            examples=("failover abort dc.yaml",),
            options=(JSON,),
            reads_configuration=True,
            takes_set=True,
        ),
        Command(
            name="hold",
            help="Keep promotions from beginning, until `failover release`.",
            details="Nothing is promoted by itself while somebody holds, and `promote` is refused"
            " unless --despite-hold is given. What has switched is finished all the same.",
            load=_hold,
            examples=(
                "failover hold dc.yaml",
                'failover hold --reason "the line to dc1 is being moved" dc.yaml',
            ),
            options=(
                Option(
                    names=("--reason",),
                    metavar="TEXT",
                    help="what others are told who want to promote",
                ),
                JSON,
            ),
            reads_configuration=True,
        ),
        Command(
            name="release",
            help="End what `failover hold` has begun.",
            load=_release,
            examples=("failover release dc.yaml",),
            options=(JSON,),
            reads_configuration=True,
        ),
        Command(
            name="status",
            help="Show roles, fences, flows and promotions.",
            load=_status,
            examples=(
                "failover status dc.yaml",
                "failover status --topic 'orders.*' --all",
                "failover status --json",
            ),
            options=(TOPIC, LISTS_ALL, JSON),
            reads_configuration=True,
        ),
        Command(
            name="history",
            help="List the promotions that the witness has the journals of, and rehearsals.",
            details="The newest 20 are kept of both, and the first and the last promotion of each "
            "direction. With `failover.rehearsal` in the file the JSON has the lists `promotions` "
            "and `rehearsals`.",
            load=_history,
            examples=("failover history dc.yaml", "failover history --json dc.yaml"),
            options=(JSON,),
            reads_configuration=True,
        ),
        Command(
            name="report",
            help="Show what a promotion did and what it cost.",
            details="Recovery time by step, what was lost, how groups went on, what was found"
            " behind the switch, hooks, and who gave the commands.",
            load=_report,
            examples=(
                "failover report dc.yaml",
                "failover report --epoch 3 --html promotion.html dc.yaml",
            ),
            options=(
                Option(
                    names=("--epoch",),
                    metavar="N",
                    help="the promotion's epoch, as `failover history` has it (default: the last)",
                    convert=int,
                ),
                Option(names=("--json",), help="print JSON instead of text", group="form"),
                Option(
                    names=("--html",),
                    metavar="FILE",
                    help="write one HTML file that needs nothing else",
                    convert=Path,
                    completes=Completes.FILE,
                    group="form",
                ),
            ),
            reads_configuration=True,
            takes_set=True,
        ),
        Command(
            name="divergence",
            help="List what only one site has, by offset and key, and what was set aside.",
            details="Reads only the parts of both logs in question. The status is 1 where records "
            "are on one site alone, or where a site could not be looked at.",
            load=_divergence,
            examples=("failover divergence dc.yaml", "failover divergence --json dc.yaml"),
            options=(
                Option(
                    names=("--json",),
                    help="print a line of JSON for each record, and all else on standard error",
                ),
            ),
            reads_configuration=True,
            takes_set=True,
        ),
        Command(
            name="recover",
            help="Restore a witness that has lost its memory from what both clusters carry.",
            details="Shows what the witness and both clusters say first. Where they do not decide, "
            "a person names the active site with --active.",
            load=_recover,
            examples=(
                "failover recover dc.yaml",
                "failover recover --write dc.yaml",
                "failover recover --active dc2 --write --config dc.yaml",
                "failover recover --replaced dc1 --write dc.yaml",
                "failover recover --believe-maps dc.yaml",
            ),
            options=(
                Option(
                    names=("--active",),
                    metavar="SITE",
                    help="the active site, where the clusters cannot tell",
                ),
                Option(
                    names=("--replaced",),
                    metavar="SITE",
                    help="a cluster that was set up anew under its old name",
                ),
                Option(
                    names=("--believe-maps",),
                    help="have maps believed that hold records of writers unknown to the witness",
                ),
                Option(names=("--write",), help="write what is shown to witness and clusters"),
            ),
            reads_configuration=True,
            takes_set=True,
        ),
        Command(
            name="secure",
            help="Show which nodes of the witness others may touch, and give them to our login.",
            details="For a witness that was used without a login, and for a new password. The "
            "status is 1 where others may touch a node.",
            load=_secure,
            examples=("failover secure dc.yaml", "failover secure --write dc.yaml"),
            options=(Option(names=("--write",), help="take the rights of others away"),),
            reads_configuration=True,
        ),
        Command(
            name="adopt",
            help="Give a pair that has begun the sets of topics that its file names.",
            details="A set begins where the default set is active, while no `mirror run` runs. The "
            "status is 1 where a set has not begun.",
            load=_adopt,
            examples=("failover adopt dc.yaml", "failover adopt --write dc.yaml"),
            options=(Option(names=("--write",), help="begin the sets that are shown"),),
            reads_configuration=True,
        ),
        Command(
            name="serve",
            help="Serve metrics and keep the idle site closed, until a signal ends the program.",
            load=_serve,
            has_json=False,
            examples=("failover serve dc.yaml", "failover serve --voter office dc.yaml"),
            options=(
                Option(
                    names=("--voter",),
                    metavar="NAME",
                    help="vote under this name of `failover.automatic.voters`, and promote the"
                    " standby by itself when a majority agrees",
                ),
            ),
            reads_configuration=True,
        ),
        Command(
            name="bootstrap",
            help="Lead clients of any language to the active site, until a signal.",
            details="Clients have its address in `bootstrap.servers`. It carries what they ask to "
            "find their brokers, and nothing else; with `failover.bootstrap.forward` it carries "
            "all, and has a port for each broker. Several may run beside each other.",
            load=_bootstrap,
            has_json=False,
            examples=("failover bootstrap dc.yaml",),
            reads_configuration=True,
        ),
    ),
    examples=(
        "failover status dc.yaml",
        "failover plan dc2 dc.yaml",
        "failover promote dc2 --config dc.yaml",
    ),
    statuses={
        ExitStatus.DONE: "The command did what it was asked.",
        ExitStatus.FAILED: "The command failed or was stopped, or the promotion was rolled back. "
        "Or it is done, and records are on one site alone, or nobody could look, as `divergence` "
        "says, too (of `promote --source-lost` a silent site is expected); or a group may go on "
        "behind records that it has not read.",
        ExitStatus.BAD_INPUT: "The command was refused: the input is bad, the witness did not "
        "answer, or the promotion may not begin or cannot fence the active site.",
    },
    faults=_faults,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    return PROGRAM.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
