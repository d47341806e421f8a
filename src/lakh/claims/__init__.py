"""Is a claim true? Verdicts with uncertainty: odds, the unknown that decides them, and what would have to be true.

Each name is imported when first used: sampling needs scipy, which costs more to load than a prediction to compute.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakh.claims.asking import ask
    from lakh.claims.distributions import Choice, Distribution, Fixed, Lognormal, Triangular, Uniform
    from lakh.claims.measurement_file import Measurements, load_measurements, measurement_schema
    from lakh.claims.must_be_true import Condition, MustBeTrue
    from lakh.claims.outlook import RunOutlook
    from lakh.claims.rehearsal import FABRICS, REHEARSED_CLAIMS, FabricOdds, RehearsalOdds, rehearsal_odds
    from lakh.claims.sensitivity import Measurement, Sensitivity, Swing
    from lakh.claims.unknowns import MeasuredValue, Unknown
    from lakh.claims.verdict import Band, CurvePoint, Reading, Verdict, check, summary
    from lakh.claims.workload import Workload, workload_of

_HOME = {
    "Band": "verdict",
    "Choice": "distributions",
    "Condition": "must_be_true",
    "CurvePoint": "verdict",
    "Distribution": "distributions",
    "FABRICS": "rehearsal",
    "FabricOdds": "rehearsal",
    "Fixed": "distributions",
    "Lognormal": "distributions",
    "MeasuredValue": "unknowns",
    "Measurement": "sensitivity",
    "Measurements": "measurement_file",
    "MustBeTrue": "must_be_true",
    "REHEARSED_CLAIMS": "rehearsal",
    "Reading": "verdict",
    "RehearsalOdds": "rehearsal",
    "RunOutlook": "outlook",
    "Sensitivity": "sensitivity",
    "Swing": "sensitivity",
    "Triangular": "distributions",
    "Uniform": "distributions",
    "Unknown": "unknowns",
    "Verdict": "verdict",
    "Workload": "workload",
    "ask": "asking",
    "check": "verdict",
    "load_measurements": "measurement_file",
    "measurement_schema": "measurement_file",
    "rehearsal_odds": "rehearsal",
    "summary": "verdict",
    "workload_of": "workload",
}

__all__ = [
    "FABRICS",
    "REHEARSED_CLAIMS",
    "Band",
    "Choice",
    "Condition",
    "CurvePoint",
    "Distribution",
    "FabricOdds",
    "Fixed",
    "Lognormal",
    "MeasuredValue",
    "Measurement",
    "Measurements",
    "MustBeTrue",
    "Reading",
    "RehearsalOdds",
    "RunOutlook",
    "Sensitivity",
    "Swing",
    "Triangular",
    "Uniform",
    "Unknown",
    "Verdict",
    "Workload",
    "ask",
    "check",
    "load_measurements",
    "measurement_schema",
    "rehearsal_odds",
    "summary",
    "workload_of",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
