"""How long does a verdict take, and how much does the small set of layouts lose against a whole search per sample?

    python -m benchmarks.claims.check [--searches 12]

Prints, for the vendor's claims on 100,000 cards: seconds of the verdict with 4,096 samples, plans timed, and plans
per minute; then, for a few random worlds, the best step of a whole search in that world over the best of the set.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace

import numpy as np

from lakh.claims import ask
from lakh.claims.throughput import Question, layouts_for, reduced, search_options, throughput
from lakh.claims.unknowns import step_unknowns
from lakh.claims.workload import workload_of
from lakh.claims.worlds import Worlds, sobol_points, software_at, system_at, worlds_at
from lakh.perf.system_of import system_of
from lakh.planner import plan_request, search
from lakh.spec import load_cluster, resolve_model

CLAIMS = ("kuae-mfu-dense-60", "kuae-mfu-moe-40", "kuae-scaling-95", "kuae-effective-time-90", "gpt4-mfu-32-36")
CLUSTER = "jd-cloud-100k"


def verdict_times() -> None:
    """Seconds and plans of each verdict."""
    print(f"{'claim':<26}{'seconds':>9}{'plans':>12}{'plans/min':>14}{'odds':>9}{'peak MB':>9}")
    for name in CLAIMS:
        begin = time.perf_counter()
        verdict = ask(name)
        seconds = time.perf_counter() - begin
        rate = verdict.plan_count / seconds * 60.0
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(
            f"{name:<26}{seconds:>9.1f}{verdict.plan_count:>12,}{rate:>14,.0f}{verdict.probability:>9.3f}{peak:>9.0f}"
        )


def set_loss(model_name: str, search_count: int) -> None:
    """The best of a whole search in single worlds over the best of the set of layouts, one fabric throughout."""
    cluster = load_cluster(CLUSTER)
    system = system_of(cluster)
    work = workload_of(resolve_model(model_name))
    count = system.accelerator_count
    request = plan_request(
        work.model,
        system,
        sequence_length=work.sequence_length,
        global_batch_sequences=work.grown_batch(count),
    )
    unknowns = step_unknowns(cluster, system, request)
    question = Question(cluster=cluster, request=request, accelerators_per_node=8, unknowns=unknowns)
    points = sobol_points(unknowns, 4096, 0)
    every = worlds_at(unknowns, points)
    layouts = reduced(question, layouts_for(question), every.take(slice(0, 256)))
    losses = []
    rows = np.random.default_rng(1).choice(np.arange(256, 4096), size=search_count, replace=False)
    for row in rows:
        world = every.take(slice(int(row), int(row) + 1))
        one_fabric = Worlds(values={**world.values, "sites": np.ones(1)}, count=1)
        request_here = replace(
            request,
            system=system_at(cluster, request.system, 8, one_fabric),
            software=software_at(request.software, one_fabric),
            options=search_options(question, precision="bf16"),
        )
        found = search(request_here, top_count=1).best
        slow = throughput(question, layouts, one_fabric)
        plain = float(slow.tokens_per_s[0]) * float(one_fabric.get("step-model-error", 1.0)[0])
        nodes = plain * float(_slow_factor(question, one_fabric))
        losses.append(1.0 - nodes / found.tokens_per_s)
    print(
        f"{model_name}: {layouts.size} layouts; loss against a whole search in {search_count} worlds: "
        f"median {np.median(losses):.2%}, worst {np.max(losses):.2%}"
    )


def _slow_factor(question: Question, world: Worlds) -> float:
    """What `throughput` takes off for slow nodes, which a search does not see."""
    still = replace(world, values={**world.values, "slow-node-share": np.full(1, 1e-12)})
    one = question, layouts_for(question, corners=1)
    return float(throughput(*one, still).tokens_per_s[0] / throughput(*one, world).tokens_per_s[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=12)
    arguments = parser.parse_args()
    verdict_times()
    for model_name in ("llama3.1-405b", "deepseek-v3"):
        set_loss(model_name, arguments.searches)


if __name__ == "__main__":
    main()
