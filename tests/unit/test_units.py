import pytest

from lakh.units import UnitError, format_duration, format_quantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("400 Gbit/s", "byte/second", 5e10),
        ("80 GiB", "byte", 80 * 2**30),
        ("80 GB", "byte", 80e9),
        ("989.4 TFLOP/s", "flop/second", 989.4e12),
        ("1.5 us", "second", 1.5e-6),
        ("20 min", "second", 1200.0),
        ("3 MWh", "joule", 1.08e10),
        ("95 %", "ratio", 0.95),
        (0.95, "ratio", 0.95),
        ("12 RMB/h", "rmb/second", 12 / 3600),
    ],
)
def test_a_readable_quantity_becomes_base_units(text: str, unit: str, value: float) -> None:
    assert parse_quantity(text, unit) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("400 Gbit", "byte/second"),
        ("fast", "byte/second"),
        ("", "byte"),
        (80, "byte"),
        (True, "ratio"),
        (None, "byte"),
        ("1 xB", "byte"),
        ("1 Kis", "second"),
        ("5 mB", "byte"),
    ],
)
def test_anything_else_is_refused_with_an_example(text: object, unit: str) -> None:
    with pytest.raises(UnitError, match="accepted: a number"):
        parse_quantity(text, unit)  # type: ignore[arg-type]


def test_text_for_people_keeps_three_digits() -> None:
    assert format_quantity(5e10, "B/s") == "50 GB/s"
    assert format_duration(0.0342) == "34.2 ms"
    assert format_duration(54 * 86400) == "54.0 days"
