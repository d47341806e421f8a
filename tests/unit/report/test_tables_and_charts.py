from __future__ import annotations

import json
import math
from dataclasses import dataclass
from xml.etree import ElementTree

import pytest

from lakh.report.charts import DASHES, PALETTE, Chart, Mark, Series, chart_rows
from lakh.report.json import document, dumps, jsonable
from lakh.report.page import charts_page
from lakh.report.plotly_figure import figure
from lakh.report.svg import charts_svg, ticks
from lakh.report.tables import Table, as_html, as_text, number, shown_columns, table, words


def one_table() -> Table:
    return table(
        "Sizes",
        ["name", number("accelerators"), number("MFU", rank=1), words("why", rank=2)],
        [
            ("small", "8", "45.6 %", "one node, nothing leaves it"),
            ("large", "100,000", "20.0 %", "a global batch of 2,048 sequences leaves little work for each of so many"),
        ],
        notes=["two sizes of one run"],
    )


@pytest.mark.parametrize("width", [28, 40, 60, 80, 120, 200])
def test_a_table_never_gets_wider_than_asked(width: int) -> None:
    text = as_text(one_table(), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "100,000" in text


def test_columns_of_the_highest_rank_go_first_and_are_named() -> None:
    assert shown_columns(one_table(), 200) == (0, 1, 2, 3)
    assert shown_columns(one_table(), 38) == (0, 1, 2)
    assert shown_columns(one_table(), 10) == (0, 1)
    assert "left out at this width: why" in as_text(one_table(), width=38).replace("\n", " ")


def test_text_has_no_colour_and_no_blanks_at_line_ends() -> None:
    text = as_text(one_table(), width=80)
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_html_of_a_table_escapes_its_cells() -> None:
    drawn = as_html(table("a < b", ["<b>"], [("<script>",)], notes=["x & y"]))
    assert "<script>" not in drawn
    assert "&lt;script&gt;" in drawn
    assert "a &lt; b" in drawn
    assert "x &amp; y" in drawn


@dataclass(frozen=True, slots=True)
class _Held:
    value: float
    parts: tuple[float, ...]


def test_json_has_null_for_what_is_not_finite() -> None:
    made = document("test", inputs={"x": math.nan}, result=_Held(math.inf, (1.0, -math.inf)), evidence={})
    assert made["result"] == {"value": None, "parts": [1.0, None]}
    assert json.loads(dumps(made))["inputs"] == {"x": None}


def test_json_refuses_what_it_does_not_know() -> None:
    with pytest.raises(TypeError, match="object"):
        jsonable(object())


def one_chart(**changes: object) -> Chart:
    series = (
        Series(
            name="a", x=(8.0, 1000.0, 100_000.0), y=(50.0, 40.0, 20.0), low=(40.0, 30.0, 10.0), high=(60.0, 50.0, 30.0)
        ),
        Series(name="b < c", x=(8.0, 1000.0), y=(30.0, 20.0), labels=("first", "second & last")),
    )
    values: dict[str, object] = {
        "title": "MFU", "x_label": "accelerators", "y_label": "MFU [%]", "series": series, "log_x": True,
        "marks": (Mark(name="claim 60 %", y=60.0),),
    }  # fmt: skip
    return Chart(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["lines", "points", "stacked"])
def test_svg_is_well_formed_and_labels_both_axes(kind: str) -> None:
    series = one_chart().series[:1] if kind == "stacked" else one_chart().series
    drawn = charts_svg([one_chart(kind=kind, series=series)])
    root = ElementTree.fromstring(drawn)
    words_in_it = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"MFU", "accelerators", "MFU [%]", "claim 60 %", "a"} <= words_in_it
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0.0, 65.0, log=False) == [0.0, 20.0, 40.0, 60.0]
    assert ticks(8.0, 100_000.0, log=True) == [10.0, 100.0, 1000.0, 10_000.0, 100_000.0]


def test_rows_of_a_chart_are_what_it_draws() -> None:
    rows = chart_rows(one_chart()).rows
    assert rows[0] == ("a", "8", "50", "40", "60", "")
    assert rows[-1] == ("b < c", "1,000", "20", "", "", "second & last")
    traces = figure(one_chart())["data"]
    assert [trace["y"] for trace in traces if trace["name"] == "a"] == [[50.0, 40.0, 20.0]]


def test_series_are_told_apart_without_colour() -> None:
    lines = [trace["line"]["dash"] for trace in figure(one_chart())["data"] if trace["name"] in ("a", "b < c")]
    assert lines == list(DASHES[:2])
    assert len(set(PALETTE)) == len(PALETTE)


def test_a_page_fetches_nothing_and_holds_the_rows_beside_each_figure() -> None:
    page = charts_page("title </title><script>", [one_chart()], [one_table()])
    assert "title &lt;/title&gt;&lt;script&gt;" in page
    own = page.replace(page[page.index("<script>") :], "")
    assert "https://" not in own
    assert "http://" not in own
    assert "The numbers of this figure" in page
    assert "b &lt; c" in page
