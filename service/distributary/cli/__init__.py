"""The command line: one module per command, and `output` for what they print.

In: arguments. Out: text or JSON, and an exit code. May import everything.
"""

from __future__ import annotations

from typing import Any

import click

from distributary import __version__
from distributary.cli import output
from distributary.cli.demo import demo
from distributary.cli.doctor import doctor
from distributary.cli.init import init
from distributary.cli.pause import pause, unpause
from distributary.cli.plan import plan
from distributary.cli.quarantine import quarantine
from distributary.cli.resume import resume
from distributary.cli.run import run
from distributary.cli.schema import schema
from distributary.cli.snapshot import snapshot
from distributary.cli.status import status
from distributary.cli.validate import validate
from distributary.cli.verify import verify
from distributary.errors import DistributaryError

__all__ = ["main"]


class _Main(click.Group):
    """Prints the errors that users can do something about as a message, and ends with their exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DistributaryError as error:
            output.show_error(error)
            ctx.exit(error.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            output.show_unexpected(error)
            ctx.exit(DistributaryError.exit_code)


@click.group(
    cls=_Main,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done; 1 a check failed, or a table is halted; 2 wrong usage, a bad config, or an unexpected "
    "error; 3 another driver already runs this config.",
)
@click.version_option(__version__, prog_name="distributary")
def main() -> None:
    """Keeps one Delta Lake table per source table equal to what Debezium writes into Kafka.

    \b
    New here?                distributary demo
    Write a first config:    distributary init --bootstrap-servers HOST:PORT
    Check a config:          distributary validate -c config.yaml
    See what run would do:   distributary plan -c config.yaml
    Check this machine:      distributary doctor -c config.yaml
    Run the service:         distributary run -c config.yaml
    Show tables' states:     distributary status -c config.yaml
    See that they are right: distributary verify -c config.yaml
    See bad records:         distributary quarantine list -c config.yaml
    Have rows sent again:    distributary snapshot -c config.yaml TABLE
    Pause the service:       distributary pause -c config.yaml
    """


COMMANDS = (
    demo,
    doctor,
    init,
    pause,
    plan,
    quarantine,
    resume,
    run,
    schema,
    snapshot,
    status,
    unpause,
    validate,
    verify,
)
for command in COMMANDS:
    main.add_command(command)
