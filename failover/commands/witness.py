"""`failover recover`, `secure` and `adopt`: what is written to the witness but promotions."""

from failover.adopt import adopt
from failover.commands.running import show
from failover.recover import recover
from failover.secure import secure
from runtime.program.command import Options
from runtime.program.program import ExitStatus


async def secure_witness(options: Options) -> int:
    """Show which nodes of the witness others may touch, and take them back with --write."""
    is_secure = await secure(options.configuration, write=options.write, show=show)
    return ExitStatus.DONE if is_secure else ExitStatus.FAILED


async def recover_witness(options: Options) -> int:
    """Show what both clusters carry of the pair, and restore the witness with --write."""
    await recover(
        options.configuration,
        active=options.active,
        replaced=() if options.replaced is None else (options.replaced,),
        write=options.write,
        believes_maps=options.believe_maps,
        show=show,
    )
    return ExitStatus.DONE


async def adopt_sets(options: Options) -> int:
    """Show which sets of the file have not begun, and begin them with --write."""
    has_all = await adopt(options.configuration, write=options.write, show=show)
    return ExitStatus.DONE if has_all else ExitStatus.FAILED
