"""Power, delivery and cost against what must be true of them."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from lakh.errors import InfeasibleError, RequestError
from lakh.perf.system_of import system_of
from lakh.planner.delivery import DAY_S, delivery_outlook, end_day, token_cost
from lakh.planner.economics import Range
from lakh.planner.power import LOWEST_CLOCK, energy_of, inlet_clock_share, site_power, step_time_factor
from lakh.spec import load_cluster
from lakh.spec.cluster import Cluster, DateRange, DeliveryPhase

START = datetime.date(2027, 1, 1)


def phase(name: str, day: int, count: int, *, spread_days: int = 0) -> DeliveryPhase:
    first = START + datetime.timedelta(days=day)
    return DeliveryPhase(
        name=name,
        date=DateRange(earliest=first, latest=first + datetime.timedelta(days=spread_days)),
        accelerators={"here": count},
    )


def rate(count: int) -> float:
    return count / DAY_S  # one token per accelerator and day


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return load_cluster("jd-cloud-100k")


def capped(cluster: Cluster, watt: float) -> Cluster:
    sites = []
    for site in cluster.sites:
        assert site.power_cap_watt is not None
        sites.append(replace(site, power_cap_watt=replace(site.power_cap_watt, value=watt, low=watt, high=watt)))
    return replace(cluster, sites=tuple(sites))


def test_100000_cards_draw_what_the_arithmetic_of_the_announcement_says(cluster: Cluster) -> None:
    # 12,500 boxes of about 10.5 kW: 131 MW of IT and 164 MW at a PUE of 1.25, all boards at their limit.
    sites = site_power(cluster, system_of(cluster), activity=1.0)
    assert sum(site.it_watt for site in sites) == pytest.approx(131e6, rel=0.02)
    assert sum(site.facility_watt.value for site in sites) == pytest.approx(164e6, rel=0.02)
    assert all(site.binding == "nothing" and site.clock_share == 1.0 for site in sites)


def test_a_cap_that_binds_is_kept_and_slows_the_step(cluster: Cluster) -> None:
    system = system_of(cluster)
    free = site_power(cluster, system, activity=0.6)
    tight = capped(cluster, 0.8 * free[0].drawn_watt)
    bound = site_power(tight, system, activity=0.6)
    for site in bound:
        assert site.binding == "power-cap"
        assert site.drawn_watt == pytest.approx(0.8 * free[0].drawn_watt, rel=1e-6)
        assert site.step_time_factor == pytest.approx(step_time_factor(0.6, site.clock_share))
        # The cube law: a fifth of the power costs much less than a fifth of the speed.
        assert 1.0 < site.step_time_factor < 1.0 / 0.8


def test_a_lower_cap_never_speeds_a_step_up(cluster: Cluster) -> None:
    system = system_of(cluster)
    factors = [
        site_power(capped(cluster, watt), system, activity=0.5)[0].step_time_factor
        for watt in (60e6, 30e6, 25e6, 20e6, 15e6, 5e6)
    ]
    assert factors == sorted(factors)
    assert factors[-1] == pytest.approx(step_time_factor(0.5, LOWEST_CLOCK), rel=1e-6)


def test_one_warm_site_slows_all_sites(cluster: Cluster) -> None:
    system = system_of(cluster)
    cool = energy_of(site_power(cluster, system, activity=0.6), step_time_s=10.0, tokens_per_step=1e8)
    warm_sites = site_power(cluster, system, activity=0.6, inlet_celsius={"guangzhou": 42.0})
    warm = energy_of(warm_sites, step_time_s=10.0, tokens_per_step=1e8)
    assert [site.binding for site in warm_sites].count("inlet-temperature") == 1
    assert warm.slowest_factor > cool.slowest_factor == 1.0
    assert warm.token_per_joule < cool.token_per_joule


def test_cool_air_costs_nothing_and_warmer_air_ever_more() -> None:
    shares = [inlet_clock_share(degrees) for degrees in (None, 20.0, 35.0, 38.0, 45.0, 90.0)]
    assert shares[:3] == [1.0, 1.0, 1.0]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == LOWEST_CLOCK


def test_an_unknown_site_and_an_impossible_activity_are_refused(cluster: Cluster) -> None:
    system = system_of(cluster)
    with pytest.raises(RequestError, match="Did you mean 'guangzhou'"):
        site_power(cluster, system, activity=0.5, inlet_celsius={"guangzou": 40.0})
    with pytest.raises(RequestError, match="activity"):
        site_power(cluster, system, activity=1.5)


def test_energy_is_power_times_time(cluster: Cluster) -> None:
    sites = site_power(cluster, system_of(cluster), activity=0.5)
    found = energy_of(sites, step_time_s=10.0, tokens_per_step=1e8)
    assert found.joule_per_step == pytest.approx(10.0 * sum(site.drawn_watt for site in sites))
    assert found.token_per_joule == pytest.approx(1e8 / found.joule_per_step)


def test_a_run_over_two_rates_ends_when_its_tokens_are_done() -> None:
    # 10 days at 100, then 900 left at 300 a day.
    assert end_day([0.0, 10.0], [100.0, 300.0], 1_900.0, replan_days=0.0) == pytest.approx(13.0)
    assert end_day([0.0, 10.0], [100.0, 300.0], 500.0, replan_days=0.0) == pytest.approx(5.0)
    assert end_day([0.0, 10.0], [100.0, 300.0], 1_900.0, replan_days=0.5) == pytest.approx(13.5)


def test_exact_dates_give_one_end_and_ranges_a_band_around_it() -> None:
    exact = delivery_outlook([phase("a", 0, 100), phase("b", 10, 300)], rate, tokens=1_900.0, start=START, replan_s=0.0)
    assert exact.days.low == exact.days.value == exact.days.high == pytest.approx(13.0)
    assert exact.middle == datetime.date(2027, 1, 14)
    assert dict(exact.share_by_phase) == pytest.approx({"a": 1_000 / 1_900, "b": 900 / 1_900})
    spread = delivery_outlook(
        [phase("a", 0, 100), phase("b", 5, 300, spread_days=10)], rate, tokens=1_900.0, start=START, replan_s=0.0
    )
    assert spread.days.low < spread.days.value < spread.days.high


def test_a_late_phase_costs_the_share_by_which_it_would_have_been_faster() -> None:
    # Each day late, 300 tokens less of the fast phase are done by 100 of the slow one: 200/300 of a day.
    found = delivery_outlook(
        [phase("a", 0, 100), phase("b", 10, 300)], rate, tokens=20_000.0, start=START, replan_s=0.0
    )
    assert found.lateness[1].days_per_month == pytest.approx(30.0 * 2.0 / 3.0)
    assert all(one.days_per_month >= 0.0 for one in found.lateness)


def test_a_later_delivery_never_ends_a_run_earlier() -> None:
    ends = [
        delivery_outlook(
            [phase("a", 0, 100), phase("b", day, 300, spread_days=20)], rate, tokens=9_000.0, start=START
        ).days.value
        for day in (5, 20, 40, 80)
    ]
    assert ends == sorted(ends)


def test_no_phase_no_token_and_no_rate_are_refused() -> None:
    with pytest.raises(RequestError) as caught:
        delivery_outlook([], rate, tokens=0.0, start=START)
    assert len(caught.value.problems) == 2
    with pytest.raises(InfeasibleError, match="train nothing"):
        delivery_outlook([phase("a", 0, 100)], lambda count: 0.0, tokens=1.0, start=START)


def test_a_token_costs_price_over_rate_and_the_cheapest_pairs_low_price_with_high_rate(cluster: Cluster) -> None:
    assert cluster.prices is not None
    speed = Range(low=5e7, value=1e8, high=2e8)
    found = token_cost(
        cluster.prices,
        accelerator_count=100_000,
        accelerators_per_node=8,
        tokens_per_s=speed,
        facility_watt=Range(low=1e8, value=1.3e8, high=1.6e8),
    )
    price = cluster.prices.on_demand_per_accelerator_s
    assert price is not None and found.rent_per_token is not None and found.owned_per_token is not None
    assert found.rent_per_token.value == pytest.approx(100_000 * price.value / 1e8)
    assert found.rent_per_token.low == pytest.approx(100_000 * price.low / 2e8)
    # 12,500 boxes of 900 kRMB over four years are 89 RMB a second; 130 MW at 0.6 RMB/kWh are 21.7.
    assert found.owned_per_token.value * 1e8 == pytest.approx(89.1 + 21.7, rel=0.01)
