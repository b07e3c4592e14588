"""The command line of `failover`: what there is to type, and what each command loads and calls."""

import sys
from collections.abc import Sequence
from typing import Final

from runtime.program.command import Act, Command, Option, Options, Word
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
)
JSON: Final = Option(names=("--json",), help="print JSON instead of text")


def _promote() -> Act:
    from failover.commands import promote, stop_at_signals

    return lambda options: stop_at_signals(promote, options)


def _plan() -> Act:
    from failover.commands import plan, stop_at_signals

    return lambda options: stop_at_signals(plan, options)


def _abort() -> Act:
    from failover.commands import abort, stop_at_signals

    return lambda options: stop_at_signals(abort, options)


def _status() -> Act:
    from failover.commands import status, stop_at_signals

    return lambda options: stop_at_signals(status, options)


def _divergence() -> Act:
    from failover.commands import divergence, stop_at_signals

    return lambda options: stop_at_signals(divergence, options)


def _recover() -> Act:
    from failover.commands import recover_witness, stop_at_signals

    return lambda options: stop_at_signals(recover_witness, options)


def _secure() -> Act:
    from failover.commands import secure_witness, stop_at_signals

    return lambda options: stop_at_signals(secure_witness, options)


def _serve() -> Act:
    from failover.commands import stop_at_signals
    from failover.serve.exporter import serve

    async def serve_metrics(options: Options) -> int:
        await serve(options.configuration)
        return ExitStatus.DONE

    return lambda options: stop_at_signals(serve_metrics, options)


def _bootstrap() -> Act:
    from failover.bootstrap.endpoint import serve_bootstrap
    from failover.commands import stop_at_signals

    async def serve(options: Options) -> int:
        await serve_bootstrap(options.configuration)
        return ExitStatus.DONE

    return lambda options: stop_at_signals(serve, options)


def _faults() -> Faults:
    from failover.journal.execute import RollbackStuck, StepFailed
    from failover.journal.journal import JournalUnreadable
    from failover.journal.lease import LeaseHeld, LeaseLost
    from failover.journal.store import Superseded
    from failover.promote import PromotionRefused
    from failover.recover import CannotRecover
    from failover.secure import CannotSecure
    from runtime.configuration.config import ConfigurationError
    from runtime.coordination.witness import WitnessGarbled
    from runtime.coordination.zookeeper import ZooKeeperFault
    from runtime.pages.metrics import AddressInUse
    from runtime.pair.opening import PairContradicted, PairUnknown

    refused = (
        ConfigurationError,
        PromotionRefused,
        LeaseHeld,
        JournalUnreadable,
        WitnessGarbled,
        ZooKeeperFault,
        AddressInUse,
        PairContradicted,
        PairUnknown,
        CannotRecover,
        CannotSecure,
    )
    failed = (RollbackStuck, StepFailed, LeaseLost, Superseded)
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
            details="A promotion is written down step by step in the witness; after a crash or a "
            "signal the same command resumes it. Records are given up only with --source-lost.",
            load=_promote,
            examples=(
                "failover promote dc2 dc.yaml",
                "failover promote dc2 --source-lost --config dc.yaml",
            ),
            words=(SITE,),
            options=HOW,
            reads_configuration=True,
        ),
        Command(
            name="plan",
            help="Show what promote would do, and change nothing.",
            load=_plan,
            examples=("failover plan dc2 dc.yaml", "failover plan dc2 --source-lost dc.yaml"),
            words=(SITE,),
            options=(*HOW, JSON),
            reads_configuration=True,
        ),
        Command(
            name="abort",
            help="Take back a promotion that was not finished.",
            load=_abort,
            examples=("failover abort dc.yaml",),
            reads_configuration=True,
        ),
        Command(
            name="status",
            help="Show roles, fences, flows and promotions.",
            load=_status,
            examples=("failover status dc.yaml", "failover status --json"),
            options=(JSON,),
            reads_configuration=True,
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
                Option(names=("--write",), help="write what is shown to witness and clusters"),
            ),
            reads_configuration=True,
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
            name="serve",
            help="Serve metrics and keep the idle site closed, until a signal ends the program.",
            load=_serve,
            examples=("failover serve dc.yaml",),
            reads_configuration=True,
        ),
        Command(
            name="bootstrap",
            help="Show clients of any language the way to the active site, until a signal.",
            details="Clients have its address in `bootstrap.servers`. It carries what they ask to "
            "find their brokers, and nothing else; several may run beside each other.",
            load=_bootstrap,
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
        "Or it is done, and records are on one site alone, or nobody could look; the same of "
        "`divergence`.",
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
