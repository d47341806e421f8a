"""What does one catalogue entry say? Its plain fields and its facts, for tables and for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from lakh.catalog import Accelerator, Claim, Model, Node
from lakh.evidence import Fact
from lakh.report import rows
from lakh.report.tables import Table
from lakh.report.unknowns import walk_facts
from lakh.spec.cluster import Cluster

Entry = Accelerator | Node | Model | Cluster | Claim

KIND_OF: Mapping[type, str] = {
    Accelerator: "accelerators",
    Node: "nodes",
    Model: "models",
    Cluster: "clusters",
    Claim: "claims",
}


def entry_tables(entry: Entry) -> list[Table]:
    """One entry in full."""
    facts = [(path_text(path), fact) for path, fact in walk_facts(entry)]
    plain = [(name.replace("_", " "), _plain(value)) for name, value in _plain_fields(entry)]
    if isinstance(entry, Model):
        plain.insert(1, ("parameters", f"{entry.parameter_count:,}"))
        plain.insert(2, ("active parameters", f"{entry.active_parameter_count:,}"))
    if isinstance(entry, Cluster):
        plain.insert(2, ("accelerators", f"{entry.accelerator_count:,}"))
    return rows.facts_table(entry.name, facts, [pair for pair in plain if pair[1]])


def kind_table(kind: str, entries: Sequence[Any]) -> Table:
    """All entries of one kind, one line each."""
    writers: Mapping[str, Any] = {
        "accelerators": rows.accelerators_table,
        "nodes": rows.nodes_table,
        "models": rows.models_table,
        "clusters": rows.clusters_table,
        "claims": rows.claim_list_table,
    }
    made: Table = writers[kind](entries)
    return made


def path_text(path: Sequence[str | int]) -> str:
    """Where a fact stands: "sites[0].pools[0].count"."""
    written = ""
    for part in path:
        written += f"[{part}]" if isinstance(part, int) else f".{part}"
    return written.lstrip(".")


def _plain_fields(entry: Any) -> list[tuple[str, Any]]:
    return [
        (field.name, value)
        for field in fields(entry)
        if not isinstance(value := getattr(entry, field.name), Fact) and not _holds_facts(value)
    ]


def _holds_facts(value: Any) -> bool:
    return any(True for _ in walk_facts(value))


def _plain(value: Any) -> str:
    if value is None or value == () or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if value >= 10_000 else str(value)
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    if is_dataclass(value) and not isinstance(value, type):
        return ", ".join(
            f"{field.name.replace('_', ' ')} {_plain(getattr(value, field.name))}" for field in fields(value)
        )
    if isinstance(value, list | tuple):
        return "; ".join(_plain(item) for item in value)
    return str(value)


def entry_evidence(entry: Entry) -> dict[str, Fact]:
    """Every fact of an entry by its place."""
    return {path_text(path): fact for path, fact in walk_facts(entry)}
