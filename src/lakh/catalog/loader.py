"""Where do the catalogue's objects come from? One loader: the files beside this module, read once, on demand."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import yaml

from lakh.catalog.facts import FactError, read_fact
from lakh.catalog.hardware import PEAK_FORMATS, SCALE_UP_KINDS, Accelerator, Claim, Node, ScaleUp, ScaleUpKind
from lakh.catalog.model import Experts, LatentAttention, Model
from lakh.errors import Problem, SpecError, UnknownNameError, list_names, nearest_hint
from lakh.evidence import STATUSES, Fact

FOLDER = Path(__file__).parent

_YamlLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times quicker, where it is built in
T = TypeVar("T")


class _Entry:
    """One catalogue file being read: hands out fields, remembers which were asked for, reports what is wrong."""

    def __init__(self, where: str, raw: Mapping[str, Any]) -> None:
        self.where, self.raw = where, raw
        self.problems: list[Problem] = []
        self.known: set[str] = {"status", "source"}
        status, source = raw.get("status", "estimate"), raw.get("source", "")
        if status not in STATUSES:
            self.refuse("status", status, list_names(STATUSES), nearest_hint(status, STATUSES))
            status = "estimate"
        self.status, self.source = status, str(source)

    def refuse(self, field: str, found: object, accepted: str, hint: str = "") -> None:
        self.problems.append(Problem(where=f"{self.where}: {field}", found=found, accepted=accepted, hint=hint))

    def get(self, field: str, kind: type[T], default: T | None = None) -> T:
        self.known.add(field)
        value = self.raw.get(field, default)
        if isinstance(value, int) and not isinstance(value, bool) and kind is float:
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.refuse(
                field, value, {str: "a text", int: "a whole number", bool: "true or false"}.get(kind, "a value")
            )
            return default if default is not None else kind()
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        self.known.add(field)
        value = self.raw.get(field, ())
        if not isinstance(value, list | tuple):
            self.refuse(field, value, "a list of texts")
            return ()
        return tuple(str(item) for item in value)

    def fact(self, field: str, unit: str) -> Fact:
        self.known.add(field)
        return self.read_fact(field, self.raw.get(field), unit)

    def optional_fact(self, field: str, unit: str) -> Fact | None:
        self.known.add(field)
        return self.fact(field, unit) if self.raw.get(field) is not None else None

    def read_fact(self, field: str, raw: object, unit: str) -> Fact:
        try:
            return read_fact(raw, unit, status=self.status, source=self.source)
        except FactError as error:
            self.refuse(f"{field}.{error.key}" if error.key else field, error.found, error.accepted, error.hint)
            return Fact(value=0.0, low=0.0, high=0.0, unit=unit, status="estimate", source="")

    def mapping(self, field: str) -> Mapping[str, Any]:
        self.known.add(field)
        value = self.raw.get(field)
        if not isinstance(value, Mapping):
            self.refuse(field, value, "a mapping")
            return {}
        return value

    def finish(self) -> None:
        known = sorted(self.known)
        for field in self.raw:
            if field not in self.known:
                self.refuse(str(field), self.raw[field], list_names(known, most=40), nearest_hint(field, known))
        if self.problems:
            raise SpecError(self.problems)


def _accelerator(entry: _Entry) -> Accelerator:
    peaks: dict[str, Fact] = {}
    for key, raw in entry.mapping("peak_flop_per_s").items():
        if key not in PEAK_FORMATS:
            entry.refuse(f"peak_flop_per_s.{key}", raw, list_names(PEAK_FORMATS), nearest_hint(key, PEAK_FORMATS))
            continue
        peaks[key] = entry.read_fact(f"peak_flop_per_s.{key}", raw, "flop/second")
    return Accelerator(
        name=entry.get("name", str),
        maker=entry.get("maker", str),
        year=entry.get("year", int),
        aliases=entry.texts("aliases"),
        announced=entry.get("announced", bool, False),
        peak_flop_per_s=MappingProxyType(peaks),
        memory_bytes=entry.fact("memory_bytes", "byte"),
        usable_memory_bytes=entry.optional_fact("usable_memory_bytes", "byte"),
        memory_bytes_per_s=entry.fact("memory_bytes_per_s", "byte/second"),
        scale_up_bytes_per_s=entry.fact("scale_up_bytes_per_s", "byte/second"),
        pcie_bytes_per_s=entry.fact("pcie_bytes_per_s", "byte/second"),
        board_power_watt=entry.fact("board_power_watt", "watt"),
        idle_power_watt=entry.optional_fact("idle_power_watt", "watt"),
        kernel_launch_s=entry.optional_fact("kernel_launch_s", "second"),
        forms=entry.texts("forms"),
        notes=entry.get("notes", str, ""),
    )


def _scale_up(entry: _Entry) -> ScaleUp:
    raw = entry.mapping("scale_up")
    kind, size = raw.get("kind"), raw.get("domain_size")
    if kind not in SCALE_UP_KINDS:
        entry.refuse("scale_up.kind", kind, list_names(SCALE_UP_KINDS), nearest_hint(kind, SCALE_UP_KINDS))
        kind = "none"
    if not isinstance(size, int) or size < 1:
        entry.refuse("scale_up.domain_size", size, "a whole number of 1 or more")
        size = 1
    return ScaleUp(kind=cast(ScaleUpKind, kind), domain_size=size)


def _node(entry: _Entry) -> Node:
    entry.known.add("default")
    return Node(
        name=entry.get("name", str),
        maker=entry.get("maker", str),
        aliases=entry.texts("aliases"),
        accelerator=accelerator(entry.get("accelerator", str)).name,
        accelerator_count=entry.get("accelerator_count", int),
        scale_up=_scale_up(entry),
        nic_count=entry.get("nic_count", int),
        nic_bytes_per_s=entry.fact("nic_bytes_per_s", "byte/second"),
        cpu_core_count=entry.fact("cpu_core_count", "1"),
        host_memory_bytes=entry.fact("host_memory_bytes", "byte"),
        host_power_watt=entry.fact("host_power_watt", "watt"),
        max_power_watt=entry.optional_fact("max_power_watt", "watt"),
        notes=entry.get("notes", str, ""),
    )


CLAIM_UNITS: Mapping[str, str] = MappingProxyType(
    {
        "mfu": "ratio",
        "scaling_efficiency": "ratio",
        "effective_time": "ratio",
        "scale_up_bytes_per_s": "byte/second",
    }
)
"""Quantities a claim may be about, with their base unit."""


def _claim(entry: _Entry) -> Claim:
    quantity = entry.get("quantity", str)
    if quantity not in CLAIM_UNITS:
        accepted = tuple(CLAIM_UNITS)
        entry.refuse("quantity", quantity, list_names(accepted), nearest_hint(quantity, accepted))
    return Claim(
        name=entry.get("name", str),
        aliases=entry.texts("aliases"),
        statement=entry.get("statement", str),
        who=entry.get("who", str),
        when=entry.get("when", str),
        quantity=quantity,
        value=entry.fact("value", CLAIM_UNITS.get(quantity, "1")),
        conditions=MappingProxyType({str(key): str(value) for key, value in entry.mapping("conditions").items()}),
        undefined=entry.texts("undefined"),
    )


def _read_yaml(path: Path) -> Any:
    return yaml.load(path.read_bytes(), Loader=_YamlLoader)


def _read_folder(kind: str, build: Callable[[_Entry], T]) -> Mapping[Path, tuple[T, Mapping[str, Any]]]:
    found: dict[Path, tuple[T, Mapping[str, Any]]] = {}
    for path in sorted((FOLDER / kind).glob("*.yaml")):
        raw = _read_yaml(path)
        entry = _Entry(f"{kind}/{path.name}", raw)
        made = build(entry)
        entry.finish()
        found[path] = (made, raw)
    return found


def _index(kind: str, things: Iterable[Any]) -> Mapping[str, Any]:
    """Every name and alias, case folded. Two things with one name are our mistake, and found here."""
    index: dict[str, Any] = {}
    for thing in things:
        for name in (thing.name, *thing.aliases):
            held = index.setdefault(name.casefold(), thing)
            if held is not thing:
                raise SpecError(
                    Problem(where=f"{kind} {thing.name}", found=name, accepted=f"a name that {held.name} does not use")
                )
    return MappingProxyType(index)


def _find(kind: str, name: object, index: Mapping[str, T], accepted: Iterable[str]) -> T:
    found = index.get(name.strip().casefold()) if isinstance(name, str) else None
    if found is None:
        raise UnknownNameError(kind, str(name), tuple(accepted))
    return found


# --- accelerators and nodes -------------------------------------------------------------------------------------


@cache
def accelerators() -> tuple[Accelerator, ...]:
    """All accelerators, by name."""
    return tuple(sorted((made for made, _ in _read_folder("accelerators", _accelerator).values()), key=_by_name))


def _by_name(thing: Any) -> str:
    return str(thing.name).casefold()


@cache
def _accelerator_index() -> Mapping[str, Accelerator]:
    return _index("accelerator", accelerators())


def accelerator(name: str) -> Accelerator:
    """The accelerator of that name or alias, upper and lower case alike.

    Raises:
        UnknownNameError: no accelerator has that name; says the nearest one
    """
    return _find("accelerator", name, _accelerator_index(), (made.name for made in accelerators()))


@cache
def _nodes_with_default() -> tuple[tuple[Node, bool], ...]:
    return tuple((made, raw.get("default") is True) for made, raw in _read_folder("nodes", _node).values())


@cache
def nodes() -> tuple[Node, ...]:
    """All nodes, by name."""
    return tuple(sorted((made for made, _ in _nodes_with_default()), key=_by_name))


@cache
def _node_index() -> Mapping[str, Node]:
    return _index("node", nodes())


def node(name: str) -> Node:
    """The node of that name or alias, upper and lower case alike.

    Raises:
        UnknownNameError: no node has that name; says the nearest one
    """
    return _find("node", name, _node_index(), (made.name for made in nodes()))


@cache
def _defaults() -> Mapping[str, Node]:
    defaults: dict[str, Node] = {}
    for made, is_default in _nodes_with_default():
        if is_default and defaults.setdefault(made.accelerator, made) is not made:
            raise SpecError(
                Problem(where=f"node {made.name}: default", found=True, accepted=f"one default for {made.accelerator}")
            )
    return MappingProxyType(defaults)


def default_node_for(accelerator_name: str) -> Node:
    """The node assumed where only the accelerator is named: the maker's own box, or the most common one.

    Raises:
        UnknownNameError: no accelerator has that name, or no node of it is known
    """
    chosen = accelerator(accelerator_name)
    return _find("node with accelerator", chosen.name, {k.casefold(): v for k, v in _defaults().items()}, _defaults())


# --- models -----------------------------------------------------------------------------------------------------

_MODELS_CSV = FOLDER / "measurements" / "models.csv"


def training_measurements_path() -> Path:
    """The published training measurements that ship with Lakh (CSV; columns in measurements/README.md)."""
    return FOLDER / "measurements" / "training-measured.csv"


def _whole(row: Mapping[str, str], column: str) -> int:
    return int(float(row[column])) if row[column] else 0


def _billions(row: Mapping[str, str], column: str) -> float | None:
    return float(row[column]) * 1e9 if row[column] else None


def _model_from_row(row: Mapping[str, str], families: Mapping[str, Mapping[str, bool]]) -> Model:
    experts = latent = None
    if row["experts"]:
        experts = Experts(
            expert_count=_whole(row, "experts"),
            experts_per_token=_whole(row, "experts_per_token"),
            expert_ffn_size=_whole(row, "moe_ffn"),
            shared_ffn_size=_whole(row, "shared_ffn_total"),
            moe_layer_count=_whole(row, "moe_layers"),
        )
    if row["mla_kv_lora_rank"]:
        latent = LatentAttention(
            q_lora_rank=_whole(row, "mla_q_lora_rank") or None,
            kv_lora_rank=_whole(row, "mla_kv_lora_rank"),
            qk_nope_head_size=_whole(row, "mla_qk_nope_dim"),
            qk_rope_head_size=_whole(row, "mla_qk_rope_dim"),
            v_head_size=_whole(row, "mla_v_head_dim"),
        )
    return Model(
        name=row["model"],
        family=row["family"],
        layer_count=_whole(row, "layers"),
        hidden_size=_whole(row, "hidden"),
        ffn_size=_whole(row, "ffn_dense"),
        head_count=_whole(row, "heads"),
        kv_head_count=_whole(row, "kv_heads"),
        head_size=_whole(row, "head_dim"),
        vocabulary_size=_whole(row, "vocab"),
        mlp_matrix_count=_whole(row, "mlp_matrices"),
        tied_embeddings=row["tied_embeddings"] == "1",
        learned_position_count=_whole(row, "learned_positions"),
        experts=experts,
        latent_attention=latent,
        sliding_window=_whole(row, "sliding_window") or None,
        sliding_window_layer_fraction=float(row["sliding_window_layer_fraction"] or 0),
        published_parameter_count=_billions(row, "params_b_published"),
        published_active_parameter_count=_billions(row, "active_params_b_published"),
        formulae_apply=row["formulae_apply"] == "1",
        source=row["source"],
        note=row["notes"],
        **families.get(row["family"], {}),
    )


_MODEL_FIELD_TYPES: Mapping[str, type] = MappingProxyType({"int": int, "float": float, "str": str, "bool": bool})


def _model_from_file(entry: _Entry, families: Mapping[str, Mapping[str, bool]]) -> Model:
    """A model of its own file: the fields of `Model`, by their own names."""
    values: dict[str, Any] = dict(families.get(str(entry.raw.get("family")), {}))
    parts: Mapping[str, type[Experts | LatentAttention]] = {"experts": Experts, "latent_attention": LatentAttention}
    for field in fields(Model):
        entry.known.add(field.name)
        if field.name not in entry.raw:
            if field.default is MISSING:
                entry.refuse(field.name, None, f"{field.type}")
            continue
        if field.name in parts:
            part = _Entry(f"{entry.where}: {field.name}", entry.mapping(field.name))
            names = [inner.name for inner in fields(parts[field.name])]
            values[field.name] = parts[field.name](**{name: part.get(name, int) for name in names})
            part.known |= set(names)
            part.finish()
        else:
            kind = _MODEL_FIELD_TYPES[str(field.type).removesuffix(" | None")]
            values[field.name] = entry.get(field.name, kind)
    if entry.problems:
        raise SpecError(entry.problems)
    return Model(**values)


@cache
def _models_with_aliases() -> tuple[tuple[Model, tuple[str, ...]], ...]:
    families = _read_yaml(FOLDER / "models" / "families.yaml")
    with _MODELS_CSV.open(newline="", encoding="utf-8") as file:
        found = [(_model_from_row(row, families), ()) for row in csv.DictReader(file)]
    extra: list[tuple[Model, tuple[str, ...]]] = []
    for path in sorted((FOLDER / "models").glob("*.yaml")):
        if path.name == "families.yaml":
            continue
        entry = _Entry(f"models/{path.name}", _read_yaml(path))
        extra.append((_model_from_file(entry, families), entry.texts("aliases")))
        entry.finish()
    return (*found, *extra)


@cache
def models() -> tuple[Model, ...]:
    """All models, by name."""
    return tuple(sorted((made for made, _ in _models_with_aliases()), key=_by_name))


@cache
def _model_index() -> Mapping[str, Model]:
    return MappingProxyType(
        {name.casefold(): made for made, aliases in _models_with_aliases() for name in (made.name, *aliases)}
    )


def model(name: str) -> Model:
    """The model of that name or alias, upper and lower case alike.

    Raises:
        UnknownNameError: no model has that name; says the nearest one
    """
    return _find("model", name, _model_index(), (made.name for made in models()))


# --- claims -----------------------------------------------------------------------------------------------------


@cache
def claims() -> tuple[Claim, ...]:
    """All claims, by name."""
    return tuple(sorted((made for made, _ in _read_folder("claims", _claim).values()), key=_by_name))


@cache
def _claim_index() -> Mapping[str, Claim]:
    return _index("claim", claims())


def claim(name: str) -> Claim:
    """The claim of that name, upper and lower case alike.

    Raises:
        UnknownNameError: no claim has that name; says the nearest one
    """
    return _find("claim", name, _claim_index(), (made.name for made in claims()))
