import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from lakh import spec
from lakh.errors import UnknownNameError
from lakh.spec import FILE_KINDS, schema

ROOT = Path(__file__).parents[3]
EXAMPLES = [
    *(("cluster", path) for path in sorted((ROOT / "src/lakh/spec/clusters").glob("*.yaml"))),
    *(("job", path) for path in sorted((ROOT / "examples").rglob("*.job.yaml"))),
    *(("scenario", path) for path in sorted((ROOT / "examples").rglob("scenario.yaml"))),
]


class TextDates(yaml.SafeLoader):
    """As an editor reads YAML 1.2: a date is a text."""


TextDates.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=TextDates)


@pytest.mark.parametrize(("kind", "path"), EXAMPLES, ids=[path.name for _, path in EXAMPLES])
def test_what_ships_fits_its_schema(kind: str, path: Path) -> None:
    jsonschema.Draft202012Validator(schema(kind)).validate(read(path))


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_a_schema_is_one(kind: str) -> None:
    made = schema(kind)
    jsonschema.Draft202012Validator.check_schema(made)
    assert made["title"] == f"{kind}.yaml"
    assert made["additionalProperties"] is False


def test_a_schema_refuses_what_the_door_refuses() -> None:
    content = read(ROOT / "src/lakh/spec/clusters/laptop.yaml")
    for wrong in ({"sites": 3}, {"fabrik": 1}, {"fabric": {"kind": "close"}}, {"prices": {"currency": "EUR"}}):
        assert list(jsonschema.Draft202012Validator(schema("cluster")).iter_errors(content | wrong)), wrong


def test_an_unknown_kind_of_file_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"accepted: cluster, job, scenario. Did you mean 'cluster'"):
        schema("clusters")


@pytest.mark.parametrize("module", ["lakh.spec.layout", "lakh.spec.cluster", "lakh.spec.model", "lakh.catalog"])
def test_only_the_doors_import_the_schema_library(module: str) -> None:
    code = f"import sys, {module}; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_of_the_package_is_there() -> None:
    for name in spec.__all__:
        assert getattr(spec, name) is not None
    with pytest.raises(AttributeError):
        _ = spec.no_such_thing
