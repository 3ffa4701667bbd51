"""The command line: run, fuzz, perf, faults, serve-reference, accept, list, quirks, explain, new-adapter.

What needs an engine or the rules themselves is imported by the commands that do, so that the others answer at once.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from conformance.bugs import bugs
from conformance.catalogue import HOME, Row, catalogue
from conformance.console import out, refuse, unknown
from conformance.profile import Profile
from conformance.time_limit import LIMIT_S

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.callback()
def mmproof() -> None:
    """Proof that a multimodal serving engine feeds its model the picture that the user sent."""


EngineName = Annotated[str, typer.Option("--engine", help="NAME, module:object, path.py:object, worker:COMMAND or quirk:NAME.")]
OfProfile = Annotated[Profile | None, typer.Option("--profile", help="Default: what the engine's traits promise.")]
OfStages = Annotated[list[str] | None, typer.Option("--stage", help="Only this stage; may be repeated.")]
OfIds = Annotated[list[str] | None, typer.Option("--requirement", help="Only this requirement; may be repeated.")]
Known = Annotated[Path | None, typer.Option(help="List of known failures; default: the one shipped for this engine.")]
Limit = Annotated[float, typer.Option("--limit", help="Seconds that the engine may take for an answer.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the report as JSON.")]
HtmlFile = Annotated[Path | None, typer.Option("--html", help="Write the report as a page.")]
JunitFile = Annotated[Path | None, typer.Option("--junit", help="Write the report as JUnit's XML.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="List every requirement; show tracebacks.")]


@app.command()
def run(
    engine: EngineName = "reference",
    profile: OfProfile = None,
    stage: OfStages = None,
    requirement: OfIds = None,
    case: Annotated[list[str] | None, typer.Option(help="Only this case; may be repeated.")] = None,
    known: Known = None,
    limit: Limit = LIMIT_S,
    json_file: JsonFile = None,
    html_file: HtmlFile = None,
    junit_file: JunitFile = None,
    verbose: Verbose = False,
) -> None:
    """Put an engine to the proof: the named cases of every rule, and the vectors.

    Exit status: 0 it holds, 1 it does not (or its list of known failures is wrong), 2 usage, 3 a fault of the suite.
    """
    from conformance import proving
    from conformance.session import Session

    subject, entries = proving.subject_of(engine, known, verbose)
    selection = proving.selection_of(subject, profile, stage, requirement, case)
    session = Session(subject, engine, selection, limit_s=proving.positive(limit))
    made = proving.prove(session, entries, proving.ROOMS_WITH_CASES)
    proving.deliver(made, json_file, html_file, junit_file, verbose)


@app.command()
def fuzz(
    engine: EngineName = "reference",
    profile: OfProfile = None,
    stage: OfStages = None,
    requirement: OfIds = None,
    times: Annotated[int, typer.Option(min=1, help="How many times as many examples as by default.")] = 1,
    seed: Annotated[int | None, typer.Option(help="Try other examples; by default they are the same in each run.")] = None,
    known: Known = None,
    limit: Limit = LIMIT_S,
    json_file: JsonFile = None,
    html_file: HtmlFile = None,
    junit_file: JunitFile = None,
    verbose: Verbose = False,
) -> None:
    """Search for cases that break a rule, and show the smallest of each. Known failures are not searched.

    Exit status: 0 none was found, 1 some were, 2 usage, 3 a fault of the suite.
    """
    from conformance import proving
    from conformance.session import Effort, Session

    subject, entries = proving.subject_of(engine, known, verbose)
    selection = replace(proving.selection_of(subject, profile, stage, requirement, None), but=frozenset(entries))
    session = Session(subject, engine, selection, limit_s=proving.positive(limit), effort=Effort(times, seed))
    proving.deliver(proving.prove(session, {}, proving.ROOMS_WITH_SEARCHES), json_file, html_file, junit_file, verbose)


@app.command()
def faults(
    engine: EngineName = "reference",
    transfers: Annotated[int, typer.Option(min=1, help="How many transfers, in each of which a process is killed.")] = 1000,
    seed: Annotated[int, typer.Option(help="Whom to kill, and when, is drawn from it.")] = 0,
) -> None:
    """Kill senders and readers in the middle of transfers, and look what is lost, hangs or is left in shared memory.

    Exit status: 0 nothing, 1 something, 2 usage.
    """
    from conformance import proving
    from conformance.faults import run as kill
    from conformance.faults import table

    subject, _ = proving.subject_of(engine, None, False)
    if not callable(getattr(subject, "open_channel", None)):
        refuse(f"{engine} has no method open_channel: there are no transfers to be hit")
    tallies = dict(kill(subject, transfers, seed))
    out.print(table(tallies))
    raise typer.Exit(0 if all(one.holds for one in tallies.values()) else 1)


@app.command("serve-reference")
def serve_reference(
    checkpoint: Annotated[
        str, typer.Option(help="package.module:function that makes processor and model.")
    ] = "conformance.world.checkpoint:tiny_qwen2_vl",
    tp: Annotated[int, typer.Option(min=1, help="How many ranks share the language model.")] = 1,
    disaggregated: Annotated[bool, typer.Option(help="Encoder, prefill and decode are processes of their own.")] = False,
    chunk_length: Annotated[int | None, typer.Option(min=1, help="The most positions of a prompt in one step.")] = None,
    media: Annotated[list[Path] | None, typer.Option(help="Images may be files in here; may be repeated.")] = None,
) -> None:
    """Serve the reference, as processes: requests are lines of JSON on standard input, and answers on standard output.

    {"id": "1", "text": "What is <|vision_start|><|image_pad|><|vision_end|>?", "images": ["/media/cat.png"], "limit": 8}

    Exit status: 0 when all were answered, 1 when a process was lost, 2 usage.
    """
    command = [sys.executable, "-m", "reference.serving", "--checkpoint", checkpoint, "--tp", str(tp)]
    command += ["--disaggregated"] * disaggregated
    command += [] if chunk_length is None else ["--chunk-length", str(chunk_length)]
    command += [part for folder in media or () for part in ("--media", str(folder))]
    raise typer.Exit(subprocess.run(command, check=False).returncode)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def perf(context: typer.Context) -> None:
    """Compare what two engines take, in turns, and stop what is slower (`mmproof perf --help`, `docs/gates.md`)."""
    raise typer.Exit(subprocess.run([sys.executable, "-m", "perf.gate", *context.args], check=False).returncode)


@app.command()
def accept(
    report_file: Annotated[Path, typer.Argument(help="What `mmproof run --json` wrote.", metavar="REPORT")],
    list_file: Annotated[Path, typer.Argument(help="A list of known failures; written anew.", metavar="LIST")],
) -> None:
    """Bring a list of known failures up to date with a report; what is written about a failure stays."""
    from conformance import known_failures

    try:
        text = known_failures.accept(json.loads(report_file.read_text(encoding="utf-8")), list_file)
    except (OSError, ValueError) as error:
        refuse(f"{report_file}: {error}")
    except known_failures.BadList as error:
        refuse(str(error))
    list_file.write_text(text, encoding="utf-8")
    out.print(f"{list_file}: {text.count('[[failure]]')} known failures", highlight=False)


@app.command("list")
def list_requirements(
    stage: Annotated[str | None, typer.Option(help="Only this stage.")] = None,
    methods: Annotated[bool, typer.Option(help="List the methods of the engine protocol instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the requirements, or the methods that an engine may have."""
    if methods:
        _show(catalogue().methods, as_json, columns=("method", "sentence"))
        return
    stages = dict.fromkeys(row["stage"] for row in catalogue().requirements)
    if stage is not None and stage not in stages:
        refuse(unknown(stage, stages, "stage"))
    rows = [row for row in catalogue().requirements if stage in (None, row["stage"])]
    _show(rows, as_json, columns=("id", "level", "profile", "sentence"))


@app.command("quirks")
def list_quirks(as_json: AsJson = False) -> None:
    """List the known ways to be wrong, each with the requirements that catch it."""
    _show(catalogue().quirks, as_json, columns=("name", "caught_by", "sentence"))


@app.command()
def explain(
    name: Annotated[str, typer.Argument(help="A requirement (IDENTITY-03), a quirk or a method.", metavar="NAME")],
) -> None:
    """Explain a requirement, a quirk or a method of the engine protocol: all that is known of it."""
    known = catalogue()
    kinds = ((known.requirements, "id", _requirement), (known.quirks, "name", _quirk), (known.methods, "method", _method))
    found = [(lines_of, row) for rows, key, lines_of in kinds for row in rows if row[key] == name]
    if not found:
        names = [row[key] for rows, key, _ in kinds for row in rows]
        refuse(unknown(name, names, "requirement, quirk or method"))
    for lines_of, row in found:
        title, *lines = lines_of(row)
        out.print(f"[bold]{title[0]}[/]", escape(title[1]), soft_wrap=True, highlight=False)
        table = Table.grid(padding=(0, 1))
        table.add_column(style="dim", width=9)
        table.add_column(overflow="fold")
        for label, text in lines:
            table.add_row(label, escape(text))
        out.print(Padding(table, (0, 0, 0, 2)))
        if example := _example(row):
            out.print(f"try: {example}", soft_wrap=True, markup=False, highlight=False)


def _example(row: Row) -> str:
    """A command to try the requirement or the quirk; nothing for a method."""
    if "name" in row:
        return f"mmproof run --engine quirk:{row['name']} --requirement {row['caught_by'][0]}"
    return f"mmproof run --engine ENGINE --requirement {row['id']}" if "id" in row else ""


def _requirement(row: Row) -> Iterator[tuple[str, str]]:
    yield row["id"], f"{row['level']}, profile {row['profile']}, {row['source']}"
    yield "rule", row["sentence"]
    if row["explanation"]:
        yield "", row["explanation"]
    yield "asks", ", ".join(row["needs"])
    yield "cases", ", ".join(row["cases"])
    yield from (("catches", f"{one['name']}: {one['sentence']}") for one in catalogue().quirks if row["id"] in one["caught_by"])
    yield from _reported(row["bugs"])


def _quirk(row: Row) -> Iterator[tuple[str, str]]:
    yield row["name"], f"in place of {row['replaces']}"
    yield "fault", row["sentence"]
    yield from (
        ("caught by", f"{one['id']}: {one['sentence']}") for one in catalogue().requirements if one["id"] in row["caught_by"]
    )
    yield from _reported(row["bugs"])


def _method(row: Row) -> Iterator[tuple[str, str]]:
    yield row["method"], f"takes {', '.join(row['arguments']) or 'nothing'}"
    yield "contract", row["contract"]
    yield "asked by", ", ".join(one["id"] for one in catalogue().requirements if row["method"] in one["needs"])


def _reported(ids: list[str]) -> Iterator[tuple[str, str]]:
    yield from (("reported", f"{bugs()[id].title}: {bugs()[id].source}") for id in ids)


@app.command("new-adapter")
def new_adapter(name: Annotated[str, typer.Argument(help="Your engine's name; NAME.py is written.", metavar="NAME")]) -> None:
    """Write a working adapter of a few lines, to be filled with your engine's own functions."""
    if not name.isidentifier():
        refuse(f"{name!r} is no Python name; use letters, digits and _")
    path = Path(f"{name}.py")
    if path.exists():
        refuse(f"{path} exists already")
    path.write_text((HOME / "adapters" / "skeleton.txt").read_text(encoding="utf-8").replace("NAME", name), encoding="utf-8")
    out.print(f"wrote {path}; now: mmproof run --engine {path}:Engine", highlight=False, soft_wrap=True)
    out.print("`mmproof list --methods` names what else it may have, `mmproof explain METHOD` is the contract", soft_wrap=True)


def _show(rows: list[Row], as_json: bool, columns: tuple[str, ...]) -> None:
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "), no_wrap=column in ("id", "method", "name"))
    for row in rows:
        table.add_row(*(escape(", ".join(v) if isinstance(v := row[column], list) else str(v)) for column in columns))
    out.print(table)
