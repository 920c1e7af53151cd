"""Create a network of real peers, run it and collect its results; run or check a single node."""

import shlex
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from freewalk.cli import terminal
from freewalk.cli.application import DEFAULT, Quiet, SpecFile, WithDefault, app, examples, group

_PROBLEMS = 1  # the exit code of a check that found problems
_SHOWN = 12  # nodes in a table

networks = group(
    "freewalk network init my.toml net   create a folder for every node",
    "freewalk network up net             start all nodes on this machine",
    "freewalk network launch net         start the walks",
    "freewalk network watch net          follow their progress",
    "freewalk network collect net        fetch the models and the record",
    "freewalk network forget net --run first   remove a run from all nodes",
    "freewalk network down net           stop all nodes",
)
app.add_typer(networks, name="network", help="Run a walk between real processes: a network of nodes on this machine.")

nodes = group(
    "freewalk node net/node-0007/config.toml         run a node",
    "freewalk node check net/node-0007/config.toml   find problems and suggest fixes",
    cls=WithDefault,
)
app.add_typer(nodes, name="node", help="Run or check one node of a network.")

ConfigFile = Annotated[
    Path,
    typer.Argument(metavar="CONFIG", help="TOML configuration of a node; `freewalk network init` writes it."),
]


_INIT = ("init my.toml net", 'init my.toml net --label "MHLJ" --lease 5', "init net --upgrade")


@networks.command(epilog=examples(*(f"freewalk network {one}" for one in _INIT)))
def init(
    spec: SpecFile,
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="Folder to create.", show_default=False)] = None,
    label: Annotated[str | None, Option(help="Label of a walk of the spec; not needed if there is only one.")] = None,
    host: Annotated[str, Option(help="Address of this machine on which the nodes listen.")] = "127.0.0.1",
    first_port: Annotated[int | None, Option(min=1, max=65535, help="First port to use. Default: free ports.")] = None,
    lease: Annotated[float | None, Option(help="Seconds of silence after which a token is re-issued.")] = None,
    plain: Annotated[bool, Option("--plain", help="Use no certificates; only to try things on 127.0.0.1.")] = False,
    force: Annotated[bool, Option("--force", help="Replace the network in the folder and all it has stored.")] = False,
    upgrade: Annotated[bool, Option("--upgrade", help="Let a network, the only argument, sign what it says.")] = False,
    quiet: Quiet = False,
) -> None:
    """Create a folder for every node of a spec (configuration, certificate, key, data) and one for the operator.

    A spec can name classes of your own as "module:Name". They are imported, which executes their code.
    """
    from freewalk.peers.network import init as setup

    tell = None if quiet else terminal.say
    if upgrade or folder is None:
        if folder is not None or not upgrade:
            raise typer.BadParameter("give a spec and a folder, or with --upgrade the folder of a network only")
        setup.upgrade(spec, tell)
        terminal.out(f"{spec}: its nodes sign from now on", quiet)
        return
    options: dict[str, Any] = {"label": label, "host": host, "first_port": first_port, "lease": lease}
    made = setup.init(spec, folder, **options, plain=plain, force=force, tell=tell)
    from rich.table import Column, Table

    heads = (Column("node", justify="right"), "name", "address", Column("tokens", justify="right"))
    table = Table(*heads, box=None, pad_edge=False, header_style="bold")
    for one in made.nodes[:_SHOWN]:
        table.add_row(str(one.number), one.name, one.address, str(made.starts.count(one.number) or ""))
    terminal.console(quiet).print(table)
    if (rest := len(made.nodes) - _SHOWN) > 0:
        terminal.out(f"and {rest} more", quiet)
    security = "plain connections" if made.table.plain else f"certificates; the authority's key is in {folder}/operator"
    run = made.table.run
    tokens = "1 token" if run.tokens == 1 else f"{run.tokens} tokens"
    words = f"{made.table.label}: {len(made.nodes)} nodes, {tokens} of {run.steps:,} updates, {security}"
    terminal.out(f"{words}\nnext  {shlex.join(['freewalk', 'network', 'up', str(folder)])}", quiet)


@nodes.command(epilog=examples("freewalk node check net/node-0007/config.toml"))
def check(config: ConfigFile) -> None:
    """Check a node and suggest fixes: certificate, clock, port, versions, data, state, neighbours.

    Code that the configuration names is imported, which executes it. The exit status is 1 if anything is wrong.
    """
    from freewalk.peers.network.config import NodeConfig
    from freewalk.peers.node.check import findings

    found = findings(NodeConfig.read(config, terminal.say))
    for name, (words, problems) in found.items():
        terminal.out("\n".join([f"wrong  {name}: {problem}" for problem in problems] or [f"ok     {name}: {words}"]))
    if any(problems for _, problems in found.values()):
        raise typer.Exit(_PROBLEMS)


def _named(context: typer.Context, run: str) -> str:
    """Check the name of a run before anything is sent."""
    from freewalk.peers.network.config import check
    from freewalk.peers.protocol.wire import RUN

    if RUN.fullmatch(run) is None:
        expected = "up to 64 letters, digits, dots, hyphens and underscores that begin with no dot, such as second"
        raise check.fail(f"network {context.info_name}", "run", run, expected)
    return run


RunName = Annotated[str, Option("--run", help="Name of the run.", callback=_named)]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a network.")]


@nodes.command(DEFAULT, epilog=examples("freewalk node net/node-0007/config.toml"))
def run(
    config: ConfigFile,
    log: Annotated[Path | None, Option(help="Write the log to this file.")] = None,
) -> None:
    """Run a node until Ctrl-C or a signal stops it.

    Code that the configuration names is imported, which executes it.
    """
    from freewalk.peers.network.config import NodeConfig
    from freewalk.peers.node import process

    process.demand()
    process.log_to(log)
    process.run(NodeConfig.read(config, terminal.say))


@networks.command(epilog=examples("freewalk network up net", "freewalk network up net --detach"))
def up(
    folder: Folder,
    detach: Annotated[bool, Option("--detach", help="Return as soon as all nodes answer.")] = False,
) -> None:
    """Start all nodes on this machine, one process per node, and restart any that die.

    Each node writes the file `log` in its folder.
    """
    from freewalk.peers.network import supervisor

    supervisor.up(folder, detach, terminal.say)


@networks.command(epilog=examples("freewalk network down net"))
def down(folder: Folder) -> None:
    """Stop all nodes that `up` has started; their state stays on disk."""
    from freewalk.peers.network import supervisor

    ended = supervisor.end(folder)
    terminal.say(f"{folder}: all nodes have ended" if ended else f"{folder}: no nodes were running here")


def _asked(folder: Path, ask: Callable[[Any], Coroutine[Any, Any, Any]]) -> tuple[Any, Any]:
    """A network, and what it answers."""
    import asyncio

    from freewalk.peers.network.init import Network
    from freewalk.peers.node.process import seclude

    network = Network.read(folder, terminal.say)
    seclude(network.secrets, terminal.say)
    return network, asyncio.run(ask(network))


@networks.command(epilog=examples("freewalk network launch net", "freewalk network launch net --run second"))
def launch(folder: Folder, run: RunName = "first") -> None:
    """Start a run: hand the initial model of each token to the node where it starts."""
    from freewalk.peers.operator import collect

    network, count = _asked(folder, lambda network: collect.launch(network, run))
    terminal.say(collect.launched(network, run, count))
    terminal.say(f"next  {collect.command('watch', folder, run)}")


@networks.command(epilog=examples("freewalk network watch net", "freewalk network watch net --json --once"))
def watch(
    folder: Folder,
    run: RunName = "first",
    as_json: Annotated[bool, Option("--json", help="Print one line of JSON per poll, for scripts.")] = False,
    once: Annotated[bool, Option("--once", help="Poll once and return.")] = False,
    every: Annotated[float, Option(min=0.1, help="Seconds between polls.")] = 1.0,
) -> None:
    """Show the position and progress of each token and which nodes answer, until all tokens have finished.

    It also ends if they are collected or lost, or if the run is forgotten.
    """
    import asyncio

    from rich.live import Live

    from freewalk.peers.operator import watch
    from freewalk.peers.operator.operator import operator_of

    async def look(network: Any) -> None:
        async with operator_of(network) as operator:
            with Live(console=terminal.console(as_json), auto_refresh=False) as live:
                while True:
                    seen = await watch.glance(operator, network, run)
                    if as_json:
                        typer.echo(watch.as_json(network, run, seen))
                    live.update(watch.table(network, run, seen), refresh=True)
                    if once or seen.over:
                        return
                    await asyncio.sleep(every)

    _asked(folder, look)


_COLLECT = ("", " --out runs/mine", " --partial")


@networks.command(epilog=examples(*(f"freewalk network collect net{one}" for one in _COLLECT)))
def collect(
    folder: Folder,
    run: RunName = "first",
    out: Annotated[Path | None, Option(help="Folder for the record. Default: DIR/runs/<run>.")] = None,
    wait: Annotated[float | None, Option(min=0, help="Seconds to wait for unfinished walks.")] = None,
    partial: Annotated[bool, Option("--partial", help="Collect what there is, and say what is missing.")] = False,
) -> None:
    """Fetch the final models, and assemble the record from the journals of all nodes.

    If an update of a surviving token is in no journal, or in two, the command fails and says which.
    With --partial, what cannot be proved is a gap, and a walk that has not finished gives its newest model.
    """
    from freewalk.peers.operator import collect

    async def bring(network: Any) -> collect.Collected:
        if wait is not None:
            await collect.finished(network, run, wait)
        return await collect.collect(network, run, partial)

    network, (record, stories) = _asked(folder, bring)
    name = "partial.npz" if record.provenance.get("gaps") else "record.npz"  # which may be there, without gaps
    path, primary = (out or folder / "runs" / run) / name, record.data.attrs["primary"]
    record.save(path)
    for row, story in enumerate(stories):
        terminal.out(f"token {row}: {story.words(network)}")
    for kind in ("gap", "doubt"):
        for words in record.provenance.get(f"{kind}s", []):
            terminal.out(f"{kind}  {words}")
    value = float(record.data[primary][..., -1].mean())
    terminal.out(f"{primary} {value:.4g}; {record.provenance['wire_bytes']:,} bytes on the wire")
    terminal.out(f"record  {path}")


@networks.command(epilog=examples("freewalk network forget net --run second"))
def forget(
    folder: Folder,
    run: Annotated[str, Option("--run", help="Name of the run.", callback=_named)],
    force: Annotated[bool, Option("--force", help="Forget it even if it is not over.")] = False,
) -> None:
    """Remove a run from the disks of all nodes: models, journals and custody. Its name cannot be used again.

    If a node does not answer, the exit status is 1: run the command again when the node is up.
    """
    from freewalk.peers.operator import collect

    network, missed = _asked(folder, lambda network: collect.forget(network, run, force))
    for words in missed:
        terminal.say(words)
    count = len(network.nodes)
    terminal.say(f"run {run!r}: forgotten at {count - len(missed)} of {count} nodes")
    if missed:
        terminal.say(f"when all nodes are up: {collect.command('forget', folder, run)}")
        raise typer.Exit(_PROBLEMS)
