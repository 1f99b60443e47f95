"""The summary of a result in a notebook: without scripts, with only its own style, every text escaped."""

from __future__ import annotations

from typing import Any

__all__ = ["summary_page"]

_BINS = 20
_SHOWN = 600


def summary_page(
    counts: dict[str, Any],
    threshold: float,
    similarities: list[float],
    clusters: list[list[tuple[str, str | None]]],
) -> str:
    """Return a page with counts, the histogram of similarities, and the largest clusters with their differences."""
    parts = ['<div style="max-width:60em">', _counts(counts)]
    if similarities:
        parts.append(_histogram(threshold, similarities))
    if clusters:
        parts.append("<p><b>Largest clusters</b></p>")
        parts.extend(_cluster(cluster) for cluster in clusters)
    return "".join(parts) + "</div>"


def _counts(counts: dict[str, Any]) -> str:
    names = [
        ("documents", "documents"),
        ("kept", "kept"),
        ("exact", "exact copies"),
        ("near", "near-duplicates"),
        ("clusters", "clusters"),
    ]
    import html

    cells = "".join(
        f'<td style="padding:0 1em 0 0"><b>{counts[key]:,}</b><br>{html.escape(name)}</td>' for key, name in names
    )
    return f"<table><tr>{cells}</tr></table>"


def _histogram(threshold: float, similarities: list[float]) -> str:
    # Pages with the same main text may be below the threshold.
    low = min(threshold, min(similarities))
    width = (1.0 - low) / _BINS or 1.0
    bins = [0] * _BINS
    for similarity in similarities:
        bins[min(int((similarity - low) / width), _BINS - 1)] += 1
    most = max(bins)
    bars = []
    for at, count in enumerate(bins):
        height = 80 * count / most
        label = f"{low + at * width:.3f} to {low + (at + 1) * width:.3f}: {count:,}"
        bars.append(
            f'<rect x="{at * 20}" y="{90 - height:.1f}" width="18" height="{height:.1f}" fill="#4477aa">'
            f"<title>{label}</title></rect>"
        )
    return (
        "<p><b>Similarity of removed documents to those that are kept</b></p>"
        f'<svg width="{_BINS * 20}" height="110" role="img" aria-label="Histogram of similarities">{"".join(bars)}'
        f'<text x="0" y="106" font-size="12" fill="currentColor">{low:.2f}</text>'
        f'<text x="{_BINS * 20}" y="106" font-size="12" text-anchor="end" fill="currentColor">1</text></svg>'
    )


def _cluster(cluster: list[tuple[str, str | None]]) -> str:
    import html

    names = " ← ".join(html.escape(name) for name, _ in cluster)
    texts = [text for _, text in cluster[:2]]
    if len(texts) < 2 or None in texts:
        return f"<p>{names}</p>"
    return (
        f"<details><summary>{names}</summary>"
        f'<div style="white-space:pre-wrap;border-left:3px solid #999;padding-left:1em">{_difference(*texts)}</div></details>'
    )


def _difference(kept: str | None, removed: str | None) -> str:
    """Return the words of both texts; those that only the kept text has are marked as `ins`, those that only the removed one has as
    `del`."""
    import difflib
    import html

    # Truncated before the comparison, which takes quadratic time; a notebook cell is too small for a whole document anyway.
    a, b = (kept or "")[:_SHOWN].split(), (removed or "")[:_SHOWN].split()
    shown = []
    for kind, start, end, other_start, other_end in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            shown.append(html.escape(" ".join(a[start:end])))
            continue
        if end > start:
            shown.append(f"<ins>{html.escape(' '.join(a[start:end]))}</ins>")
        if other_end > other_start:
            shown.append(f"<del>{html.escape(' '.join(b[other_start:other_end]))}</del>")
    return " ".join(shown)
