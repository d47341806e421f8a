"""How does a file become a checked value? The door: pydantic schemas, and its errors in Lakh's words.

Only the `*_file` modules import this one. Nothing behind the door knows pydantic.
"""

from __future__ import annotations

import datetime
import math
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from lakh.catalog import FactError, read_fact
from lakh.errors import Problem, SpecError, list_names, nearest_hint
from lakh.evidence import STATUSES, Fact
from lakh.spec.cluster import DateRange
from lakh.spec.document import Document, Location
from lakh.units import UnitError, parse_quantity

Door = TypeVar("Door", bound="DoorModel")


class DoorModel(BaseModel):
    """A mapping in a file: no unknown field, no silent conversion."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)


# --- field kinds ------------------------------------------------------------------------------------------------


def _refusal(found: object, accepted: str, hint: str = "", key: str = "") -> PydanticCustomError:
    context: dict[str, Any] = {"found": found, "accepted": accepted, "hint": hint, "key": key}
    return PydanticCustomError("lakh", "not accepted", context)


def _fact_reader(
    units: tuple[str, ...], example: str, low: float, high: float, whole: bool
) -> Callable[[Any, ValidationInfo], Fact]:
    def check(value: Any, info: ValidationInfo) -> Fact:
        origin = (info.context or {}).get("origin", "the file")
        refused: FactError | None = None
        for unit in units:
            try:
                fact = read_fact(value, unit, status="estimate", source=f"given in {origin}")
            except FactError as error:
                refused = refused or error
                continue
            if not (low <= fact.low and fact.high <= high):
                bounds = f"at least {low:g}" if math.isinf(high) else f"between {low:g} and {high:g}"
                raise _refusal(value, f"{bounds}, such as {example!r}")
            if whole and not all(float(end).is_integer() for end in (fact.low, fact.value, fact.high)):
                raise _refusal(value, f"a whole number, such as {example!r}")
            return fact
        assert refused is not None
        if refused.key:
            raise _refusal(refused.found, refused.accepted, refused.hint, refused.key)
        raise _refusal(refused.found, f"{_in_words(units)}, such as {example!r}, or a range 'LOW .. HIGH'")

    return check


def _in_words(units: tuple[str, ...]) -> str:
    words = {"1": "a number", "ratio": "a ratio from 0 to 1"}
    return words.get(units[0], f"a quantity that reduces to {' or '.join(units)}")


def _fact_schema(unit: str, example: str) -> dict[str, Any]:
    scalar: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "number"}]}
    return {
        "description": f"[{unit}] a quantity, a range 'LOW .. HIGH', or the long form with status, source and note",
        "examples": [example],
        "anyOf": [
            {"type": "string"},
            {"type": "number"},
            {
                "type": "object",
                "properties": {
                    "value": scalar,
                    "low": scalar,
                    "high": scalar,
                    "status": {"enum": list(STATUSES)},
                    "source": {"type": "string"},
                    "note": {"type": "string"},
                },
                "additionalProperties": False,
            },
        ],
    }


def _quantity(
    *units: str, example: str, low: float = 0.0, high: float = math.inf, whole: bool = False
) -> tuple[PlainValidator, WithJsonSchema]:
    return (
        PlainValidator(_fact_reader(units, example, low, high, whole)),
        WithJsonSchema(_fact_schema(" or ".join(units), example)),
    )


_bytes = _quantity("byte", example="60 PB")
_rate = _quantity("byte/second", example="400 Gbit/s", low=1.0)
_watt = _quantity("watt", example="30 MW")
_second = _quantity("second", example="1.5 us")
_metre = _quantity("metre", example="1200 km")
_ratio = _quantity("ratio", example="0.85", high=1.0)
_factor = _quantity("1", example="1.0")
_at_least_one = _quantity("1", example="2.0", low=1.0)
_count = _quantity("1", example="128", whole=True)
_token = _quantity("token", example="15 Ttoken", low=1.0)
_money = _quantity("rmb", "usd", example="900 kRMB")
_money_rate = _quantity("rmb/second", "usd/second", example="12 RMB/h")
_energy_price = _quantity("rmb/joule", "usd/joule", example="0.6 RMB/kWh")

Bytes = Annotated[Fact, _bytes[0], _bytes[1]]
BytesPerS = Annotated[Fact, _rate[0], _rate[1]]
Watt = Annotated[Fact, _watt[0], _watt[1]]
Second = Annotated[Fact, _second[0], _second[1]]
Metre = Annotated[Fact, _metre[0], _metre[1]]
Ratio = Annotated[Fact, _ratio[0], _ratio[1]]
Factor = Annotated[Fact, _factor[0], _factor[1]]
AtLeastOne = Annotated[Fact, _at_least_one[0], _at_least_one[1]]
Count = Annotated[Fact, _count[0], _count[1]]
Tokens = Annotated[Fact, _token[0], _token[1]]
Money = Annotated[Fact, _money[0], _money[1]]
MoneyPerS = Annotated[Fact, _money_rate[0], _money_rate[1]]
MoneyPerJoule = Annotated[Fact, _energy_price[0], _energy_price[1]]


def _duration(value: Any) -> float:
    try:
        seconds = parse_quantity(value, "second")
    except UnitError as error:
        raise _refusal(value, "a duration, such as '30 d'") from error
    if not (0 < seconds < math.inf):
        raise _refusal(value, "a duration above 0, such as '30 d'")
    return seconds


Duration = Annotated[float, PlainValidator(_duration), WithJsonSchema({"type": "string", "examples": ["30 d"]})]

_DATE = "a day 'YYYY-MM-DD' or a span 'YYYY-MM-DD .. YYYY-MM-DD'"


def _date_range(value: Any) -> DateRange:
    if not isinstance(value, str):
        raise _refusal(value, _DATE)
    first, _, last = value.partition("..")
    try:
        earliest = datetime.date.fromisoformat(first.strip())
        latest = datetime.date.fromisoformat(last.strip()) if last else earliest
    except ValueError:
        raise _refusal(value, _DATE) from None
    if latest < earliest:
        raise _refusal(value, _DATE, "The earlier day comes first.")
    return DateRange(earliest=earliest, latest=latest)


Date = Annotated[DateRange, PlainValidator(_date_range), WithJsonSchema({"type": "string", "description": _DATE})]


# --- errors in Lakh's words -------------------------------------------------------------------------------------


def _strip(annotation: Any) -> Any:
    """Take "Annotated" and "| None" off a type."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in (Union, types.UnionType):
            rest = [arm for arm in get_args(annotation) if arm is not type(None)]
            if len(rest) != 1:
                return annotation
            annotation = rest[0]
        else:
            return annotation


def _fields_at(model: type[DoorModel], location: Location) -> tuple[str, ...]:
    """Names of the fields that the mapping at a location accepts."""
    annotation: Any = model
    for part in location:
        annotation = _strip(annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            field = annotation.model_fields.get(str(part))
            if field is None:
                return ()
            annotation = field.annotation
        else:
            arguments = get_args(annotation)
            annotation = arguments[-1] if arguments else None
    annotation = _strip(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return tuple(annotation.model_fields)
    return ()


def _kind_of(annotation: Any) -> str:
    annotation = _strip(annotation)
    if get_origin(annotation) is Literal:
        return list_names([str(choice) for choice in get_args(annotation)])
    if get_origin(annotation) is list:
        return "a list"
    names = {str: "a text", int: "a whole number", bool: "true or false", float: "a number", Fact: "a quantity"}
    return names.get(annotation, "a mapping" if isinstance(annotation, type) else "a value")


def _missing_accepted(model: type[DoorModel], location: Location) -> str:
    annotation: Any = model
    for part in location:
        annotation = _strip(annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            field = annotation.model_fields.get(str(part))
            annotation = field.annotation if field else None
        else:
            arguments = get_args(annotation)
            annotation = arguments[-1] if arguments else None
    return f"{_kind_of(annotation)}; this field is required"


_PLAIN: Mapping[str, str] = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "float_type": "a number",
    "list_type": "a list, one item a line after '- '",
    "dict_type": "a mapping, 'field: value' lines",
    "model_type": "a mapping, 'field: value' lines",
    "finite_number": "a finite number",
}


def _problem(document: Document, model: type[DoorModel], error: ErrorDetails, base: Location) -> Problem:
    location: Location = error["loc"]
    kind, found, context = error["type"], error["input"], error.get("ctx", {})
    hint = ""
    if kind == "lakh":
        if context["key"]:
            location = (*location, *context["key"].split("."))
        found, accepted, hint = context["found"], context["accepted"], context["hint"]
    elif kind == "extra_forbidden":
        names = _fields_at(model, location[:-1])
        found, accepted, hint = location[-1], list_names(names, most=40), nearest_hint(location[-1], names)
    elif kind == "missing":
        found, accepted = None, _missing_accepted(model, location)
    elif kind == "literal_error":
        if location[-1] == "[key]":  # the name of a field, where a mapping takes a closed list of names
            location = location[:-1]
        choices = [choice.strip("'") for choice in str(context["expected"]).replace(" or ", ", ").split(", ")]
        accepted, hint = list_names(choices), nearest_hint(found, choices)
    elif kind in ("greater_than_equal", "less_than_equal", "greater_than", "less_than"):
        bound = next(iter(context.values()))
        words = {"greater_than_equal": "at least", "less_than_equal": "at most", "greater_than": "above"}
        accepted = f"{words.get(kind, 'below')} {bound}"
    elif kind in ("too_short", "string_too_short"):
        accepted = "at least one item" if kind == "too_short" else "a text that is not empty"
    else:
        accepted = _PLAIN.get(kind, error["msg"].lower())
    where = document.where((*base, *location))
    return Problem(where=where, found=found, accepted=accepted, hint=hint)


def validate(model: type[Door], document: Document, *, content: object = None, base: Location = ()) -> Door:
    """Check a document (or the part of it at `base`) against a schema.

    Raises:
        SpecError: every problem found, each with file, line and field
    """
    raw = document.content if content is None else content
    try:
        return model.model_validate(raw, context={"origin": document.path.name})
    except ValidationError as error:
        problems = [_problem(document, model, detail, base) for detail in error.errors(include_url=False)]
        raise SpecError(problems) from None


class Checks:
    """Problems that show only when fields are seen together; collected, raised once."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def refuse(self, location: Location, accepted: str, *, found: object = None, hint: str = "") -> None:
        found = self.document.value(location) if found is None else found
        self.problems.append(Problem(where=self.document.where(location), found=found, accepted=accepted, hint=hint))

    def gather(self, error: SpecError) -> None:
        self.problems.extend(error.problems)

    def finish(self) -> None:
        if self.problems:
            raise SpecError(self.problems)
