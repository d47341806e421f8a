from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakh.spec import FILE_KINDS, schema

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "files.md").read_text()


def field_names(kind: str) -> Iterator[str]:
    made: dict[str, Any] = schema(kind)
    for part in (made, *made.get("$defs", {}).values()):
        yield from part.get("properties", {})


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_every_field_of_every_file_is_on_the_reference_page(kind: str) -> None:
    missing = sorted({name for name in field_names(kind) if f"`{name}`" not in PAGE})
    assert missing == []
