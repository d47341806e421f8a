"""How fast is the Monte Carlo? 10,000 trials of a 90-day run on 12,500 nodes.

Run: python benchmarks/reliability/monte_carlo.py [TRIALS]

Prints one line per case with wall time, CPU time and the largest memory held. The first line is the compilation, which
is paid once per machine: the compiled loop is cached beside the package.
"""

from __future__ import annotations

import resource
import sys
import time

from lakh.reliability import Hardware, build_job, failure_profile, recovery_policy, simulate, state_bytes

DAY_S = 86_400.0


def main() -> None:
    trial_count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    cases = [
        ("compile or load", "undisclosed", "automated", 1, 1.0),
        ("undisclosed, hot-spares", "undisclosed", "hot-spares", trial_count, 90.0),
        ("undisclosed, automated", "undisclosed", "automated", trial_count, 90.0),
        ("undisclosed, elastic-replicas", "undisclosed", "elastic-replicas", trial_count, 90.0),
        ("meta-h100-32k, hot-spares", "meta-h100-32k", "hot-spares", trial_count, 90.0),
    ]
    for name, profile, policy, trials, days in cases:
        job = build_job(
            profile=failure_profile(profile),
            policy=recovery_policy(policy),
            hardware=Hardware(),
            accelerator_count=100_000,
            checkpoint_bytes=state_bytes(405e9),
        )
        wall, cpu = time.perf_counter(), time.process_time()
        found = simulate(job, duration_s=days * DAY_S, trial_count=trials, seed=1)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        stops = found.stop_count.sum()
        print(
            f"{name:32} {trials:6} trials  wall {wall:6.2f} s  CPU {cpu:6.2f} s  {stops / 1e6:6.1f} M stops"
            f"  {memory_bytes / 1e6:5.0f} MB  ETTR {found.ettr.mean():.3f}"
        )


if __name__ == "__main__":
    main()
