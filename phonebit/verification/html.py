"""A verification's report as one HTML file that needs nothing else: no script, no font, no network.

The page opens with the result and a link to the layer where the results part, then shows every
layer, and for those that differ where they do. On a narrow screen each layer is a block of lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from phonebit.display import escape_html as escape
from phonebit.html_page import HTML_FILE, environment_facts, facts_table, figure, html_page
from phonebit.output_files import write_output
from phonebit.verification.differences import Place
from phonebit.verification.drawings import channel_bars, map_cells
from phonebit.verification.layer_check import LayerCheck
from phonebit.verification.report import VerificationReport

STYLE: Final = """
tr.mismatch { background: var(--badband); } tr.first td { border-block: 2px solid var(--bad); }
.cards thead tr + tr th:first-child { padding-left: 0; }
svg { background: var(--band); max-width: 100%; margin: .25rem 1rem .25rem 0; }
svg rect { fill: var(--bad); }
.cards { width: 100%; } .cards td { overflow-wrap: anywhere; } .cards .soft { font-size: .85rem; }
@media (max-width: 48rem) {
  .cards thead { display: none; }
  .cards tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); }
  .cards td { display: inline-block; border: 0; text-align: left; padding: 0 .8rem 0 .2rem; }
  .cards tr.first td { border: 0; }
  .cards td.soft + td { max-width: calc(100% - 3rem); }
  .cards tr.first { border: 2px solid var(--bad); border-inline: 0; }
  .cards td.wide { display: block; } .cards td:empty { display: none; }
  .cards td[data-title]::before { content: attr(data-title) " "; color: var(--soft); }
}
"""
COLOURS: Final = {
    "equal": "good",
    "within tolerance": "good",
    "exact zeros": "mild",
    "float ties": "mild",
    "lower precision": "mild",
    "mismatch": "bad",
}
WORDS: Final = """<details><summary>What the words mean</summary>
<p class="soft">Every layer is fed the source's own values and judged alone.
<b>equal</b>: to the last bit. <b>within tolerance</b>: real values that differ by rounding.
<b>float tie</b>: a bit whose real value is zero up to rounding, so that the order of additions
decides. <b>exact zero</b>: the source's sign is 0 there, which the file counts as +1.
<b>lower precision</b>: further apart, as the precision permits that was asked for.
<b>mismatch</b>: any other difference, or too many ties and zeros to be an accident.
Of a layer that ends in bits, <b>max diff</b> is that of the values before the sign, and each
threshold was compared on both sides with the source's decision.</p></details>"""


def write_html(report: VerificationReport, path: str | Path, *, replace_any: bool = False) -> None:
    """Write a report; an existing page is replaced only when the new one is complete.

    Args:
        report: what ``verify`` returned.
        path: of the file.
        replace_any: also replace a file that is no HTML page.

    Raises:
        InputError: if the path is the report's source or file, or a file of another kind.
        OSError: if it cannot be written.
    """
    inputs = (report.source, report.file)
    write_output(path, html_report(report).encode(), HTML_FILE, inputs, replace_any)


def html_report(report: VerificationReport) -> str:
    """A report as an HTML document.

    Args:
        report: what ``verify`` returned.

    Returns:
        The text of the document; everything that came from files is escaped in it.
    """
    verdict = "passed" if report.passed else "mismatch"
    title = f"{verdict}: {Path(report.file).name}"
    body = [
        f'<h1><span class="{"good" if report.passed else "bad"}">{verdict}</span> '
        f"{escape(Path(report.file).name)}</h1>",
        *_headlines(report),
        "<h2>Layers</h2>",
        _layer_table(report),
        WORDS,
        *_differing_layers(report),
        *_end_to_end(report),
        "<h2>Summary</h2>",
        _summary(report),
    ]
    return html_page(title, body, STYLE)


def _headlines(report: VerificationReport) -> Iterable[str]:
    """Where it was found, then the result in a line per device, with links to where it parts."""
    if here := report.environment:
        devices = ", ".join(device.device for device in report.devices)
        where = f"{devices}; {here['cpu']}, PhoneBit {here['phonebit']}"
        yield f'<p class="soft">{escape(where)}</p>'
    if report.passed:
        same = " The devices agree to the last bit." if len(report.devices) > 1 else ""
        source = f"<code>{escape(report.source)}</code>"
        yield f"<p>It computes what {source} does{report.exceptions}.{same}</p>"
    for number, device in enumerate(report.devices):
        where = f"{escape(device.short_name)}: " if len(report.devices) > 1 else ""
        first = device.first_mismatch
        if first is not None:
            link = f'<a href="#{_anchor(number, first)}">layer {escape(first.name)}</a>'
            yield f'<p>{where}<span class="bad">parts first at {link}</span>: ' + (
                f"{escape(first.explanation)}</p>"
            )
        elif not device.passed:
            yield (
                f'<p>{where}<span class="bad">parts <a href="#end-to-end">end to end</a></span> '
                "although every layer alone agrees.</p>"
            )


def _summary(report: VerificationReport) -> str:
    fed_from = f"{report.framework}'s own activations"
    if report.reference == "interpreter":
        fed_from = f"the reference interpreter ({report.reason})"
    rows = [
        ("source", report.source),
        ("file", report.file),
        ("fed from", fed_from),
        ("inputs", f"{report.samples:,}"),
        *([("precision", report.precision)] if report.precision != "exact" else []),
        ("constants", report.constants.text),
        *([("rounded weights", report.rounding)] if report.stored_as else []),
        *([("note", report.default_kernels.text)] if report.default_kernels else []),
        ("date", report.date),
        *environment_facts(report.environment),
    ]
    for device in report.devices:
        whole = device.end_to_end
        mismatch = sum(layer.mismatch for layer in device.layers)
        text = (
            f"{len(device.layers)} layers, {mismatch} mismatches; end to end {whole.verdict}: same "
            f"argmax for {whole.same_argmax:,} of {whole.samples:,}, largest output difference "
            f"{whole.max_abs_difference:.2g}; {device.ties:,} float ties, "
            f"{device.zeros:,} exact zeros"
        )
        rows.append((device.device, text))
    return facts_table(rows)


def _layer_table(report: VerificationReport) -> str:
    titles = ("verdict", "max diff", "bits off", "ties", "zeros")
    head = '<tr><th rowspan="2" class="number">#</th><th rowspan="2">layer</th>'
    head += "".join(
        f'<th colspan="{len(titles)}">{escape(device.short_name)}</th>' for device in report.devices
    )
    cells = "".join(
        f"<th{_side(title)}>{title}</th>" for _device in report.devices for title in titles
    )
    rows = []
    for checks in zip(*(device.layers for device in report.devices), strict=True):
        one = checks[0]
        kind = "mismatch" if any(check.mismatch for check in checks) else ""
        kind += " first" if any(check is report.first_mismatch for check in checks) else ""
        rows.append(
            f'<tr id="layer-{one.index}" class="{kind.strip()}">'
            f'<td class="number soft">{one.index}</td><td>{escape(one.name)}<br>'
            f'<span class="soft">{escape(one.kind)}, compared with {one.oracle}</span></td>'
            + "".join(_layer_cells(report, number, check) for number, check in enumerate(checks))
            + "</tr>"
        )
    return (
        f'<table class="cards"><thead>{head}</tr>\n<tr>{cells}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table>"
    )


def _side(title: str) -> str:
    return "" if title in ("verdict", "first places", "kind") else ' class="number"'


def _layer_cells(report: VerificationReport, number: int, check: LayerCheck) -> str:
    texts = {
        "max diff": f"{check.max_abs_difference:.2g}" if check.values else "",
        "bits off": f"{check.differing_bits:,}/{check.bits:,}" if check.bits else "",
        "ties": f"{check.ties:,}" if check.ties else "",
        "zeros": f"{check.zeros:,}" if check.zeros else "",
    }
    verdict = check.verdict
    if _has_details(check):
        verdict = f'<a href="#{_anchor(number, check)}">{verdict}</a>'  # type: ignore[assignment]
    cells = "".join(
        f'<td class="number" data-title="{title}">{text}</td>' for title, text in texts.items()
    )
    several = len(report.devices) > 1
    where = f' data-title="{escape(report.devices[number].short_name)}"' if several else ""
    return f'<td class="verdict wide {COLOURS[check.verdict]}"{where}>{verdict}</td>{cells}'


def _anchor(number: int, check: LayerCheck) -> str:
    """The place of a layer's details, on device ``number``; the table where it has none.

    Where the device agrees with the first one, the first one's details are its own.
    """
    if not _has_details(check):
        return f"layer-{check.index}"
    return f"device-{number if check.other_device else 0}-layer-{check.index}"


def _has_details(check: LayerCheck) -> bool:
    return bool(check.differences.places) or check.mismatch


def _differing_layers(report: VerificationReport) -> Iterable[str]:
    """Where each differing layer differs; devices that agree share one place."""
    details = []
    for number, device in enumerate(report.devices):
        for check in device.layers:
            if not _has_details(check) or (number and not check.other_device):
                continue
            alike = [device.short_name]
            if number == 0:
                others = report.devices[1:]
                alike += [d.short_name for d in others if not d.layers[check.index].other_device]
            details.append(_layer_details(_anchor(number, check), " and ".join(alike), check))
    return ["<h2>Where they differ</h2>", *details] if details else []


def _layer_details(anchor: str, devices: str, check: LayerCheck) -> str:
    found = check.differences
    height, width = found.size
    parts = [
        f'<h3 id="{anchor}">{escape(check.name)} '
        f'<span class="{COLOURS[check.verdict]}">{check.verdict}</span> '
        f'<span class="soft">on {escape(devices)}</span></h3>',
        f"<p>{escape(check.explanation)}</p>",
    ]
    if not found.places:
        return "\n".join(parts)
    parts.append(
        figure(
            channel_bars(found.channels),
            f"by channel, 0 to {len(found.channels) - 1}; the highest bar is "
            f"{max(found.channels):,}",
        )
    )
    if height * width > 1:
        parts.append(
            figure(map_cells(found.cells), f"by row and column of the {height}x{width} map")
        )
    return "\n".join([*parts, _place_table(found.places)])


def _place_table(places: Sequence[Place]) -> str:
    titles = ("first places", "expected", "got", "above the threshold", "kind")
    head = "".join(f"<th{_side(title)}>{title}</th>" for title in titles)
    rows = []
    for place in places:
        margin = "" if place.margin is None else f"{place.margin:.3g}"
        numbers = (f"{place.expected:.9g}", f"{place.got:.9g}", margin)
        cells = "".join(
            f'<td class="number" data-title="{title}">{text}</td>'
            for title, text in zip(titles[1:4], numbers, strict=True)
        )
        name = f'<td class="wide"><code>{escape(str(place))}</code></td>'
        rows.append(f"<tr>{name}{cells}<td>{place.kind}</td></tr>\n")
    return (
        f'<table class="cards"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{''.join(rows)}</tbody></table>"
    )


def _end_to_end(report: VerificationReport) -> Iterable[str]:
    """Whole inferences, with the float ties that explain differences."""
    yield '<h2 id="end-to-end">End to end</h2>'
    for device in report.devices:
        check = device.end_to_end
        yield (
            f"<p>{escape(device.device)}: "
            f'<span class="{COLOURS[check.verdict]}">{check.verdict}</span>. Same argmax for '
            f"{check.same_argmax:,} of {check.samples:,} inputs, largest output difference "
            f"{check.max_abs_difference:.3g}, allowed without a tie {check.tolerance:.3g}.</p>"
        )
        if check.samples_with_ties:
            yield (
                f"<p>{check.samples_with_ties:,} inputs have float ties ({len(check.ties):,}) or "
                f"exact zeros ({check.zeros:,}) on their way, after which all may differ.</p>"
            )
        if check.unexplained:
            numbers = ", ".join(map(str, check.unexplained))
            yield f'<p class="bad">Differences without such a cause: inputs {numbers}.</p>'
        if check.other_device:
            yield (
                f'<p class="bad">{check.other_device:,} outputs are not what the first device '
                "computed.</p>"
            )
        if check.ties:
            items = "".join(f"<li><code>{escape(tie)}</code></li>\n" for tie in check.ties)
            yield f"<details><summary>float ties</summary>\n<ul>\n{items}</ul></details>"
