"""Which layout, at what cost, and why? Exhaustive search over the step model, its explanation, and its launch."""

from lakh.planner.economics import Economics, PowerModel, Range, economics_of
from lakh.planner.emit import FRAMEWORKS, Framework, Launch, emit, framework_options
from lakh.planner.explain import Comparison, Explanation, compare, explain, infeasible, layout_problems, shortfall
from lakh.planner.plan import Plan, plan, plan_request
from lakh.planner.power import Energy, SitePower, energy_of, site_power
from lakh.planner.scale import SCALINGS, ScaleCurve, ScalePoint, Scaling, default_sizes, scale
from lakh.planner.search import OBJECTIVES, Candidate, Objective, SearchResult, candidate_of, search
from lakh.planner.space import DIMENSIONS, PRUNING_RULES, SPACE_RULES, PlanRequest, SearchOptions, Space, SpaceCount

__all__ = [
    "DIMENSIONS",
    "FRAMEWORKS",
    "OBJECTIVES",
    "PRUNING_RULES",
    "SCALINGS",
    "SPACE_RULES",
    "Candidate",
    "Comparison",
    "Economics",
    "Energy",
    "Explanation",
    "Framework",
    "Launch",
    "Objective",
    "Plan",
    "PlanRequest",
    "PowerModel",
    "Range",
    "ScaleCurve",
    "ScalePoint",
    "Scaling",
    "SearchOptions",
    "SearchResult",
    "SitePower",
    "Space",
    "SpaceCount",
    "candidate_of",
    "compare",
    "default_sizes",
    "economics_of",
    "emit",
    "energy_of",
    "explain",
    "framework_options",
    "infeasible",
    "layout_problems",
    "plan",
    "plan_request",
    "scale",
    "search",
    "shortfall",
    "site_power",
]
