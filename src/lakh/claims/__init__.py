"""Is a claim true? Verdicts with uncertainty: odds, the unknown that decides them, and what would have to be true."""

from lakh.claims.ask import ask
from lakh.claims.distributions import Choice, Distribution, Fixed, Lognormal, Triangular, Uniform
from lakh.claims.measurement_file import Measurements, load_measurements, measurement_schema
from lakh.claims.must_be_true import Condition, MustBeTrue
from lakh.claims.outlook import RunOutlook
from lakh.claims.rehearsal import FABRICS, FabricOdds, RehearsalOdds, rehearsal_odds
from lakh.claims.sensitivity import Measurement, Sensitivity, Swing
from lakh.claims.unknowns import MeasuredValue, Unknown
from lakh.claims.verdict import Band, CurvePoint, Reading, Verdict, check, summary
from lakh.claims.workload import Workload, workload_of

__all__ = [
    "FABRICS",
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
