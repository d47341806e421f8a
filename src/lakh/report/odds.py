"""How are odds written? The verdicts of a rehearsal on several fabrics, and the words that every verdict uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakh.report import text
from lakh.report.tables import Table, number, table, words

if TYPE_CHECKING:
    from lakh.claims import Band, RehearsalOdds


def odds_text(value: float | None) -> str:
    """Odds for people: never a certainty that a finite sample cannot give."""
    if value is None:
        return "not judged"
    if value <= 0.0:
        return "< 0.1 %"
    if value >= 1.0:
        return "> 99.9 %"
    return text.percent(value, digits=2 if value < 0.01 else 1)


def band_text(band: Band | None) -> str:
    """Median with nine cases of ten behind it."""
    if band is None:
        return text.MISSING
    return f"{text.percent(band.p50)} ({text.percent(band.p05)} to {text.percent(band.p95)})"


def odds_table(odds: RehearsalOdds) -> Table:
    """The verdict of a rehearsal: claims by fabric."""
    rows = [
        (one.claim.name, one.model_name, one.fabric, odds_text(one.probability), band_text(one.quantity))
        for one in odds.rows
    ]
    columns = [words("claim"), words("model", rank=1), words("fabric"), number("odds"), number("quantity")]
    notes = [f"{odds.sample_count:,} samples of every unknown, seed {odds.seed}; lakh check CLAIM says what decides it"]
    return table("Are the claims true here?", columns, rows, notes=[*notes, *odds.skipped])
