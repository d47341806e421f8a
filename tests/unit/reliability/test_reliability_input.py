"""Bad input is refused with everything that is wrong: where, what was found, what is accepted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from lakh.errors import RequestError, SpecError, UnknownNameError
from lakh.evidence import exact
from lakh.reliability import (
    Hardware,
    build_job,
    cluster_failures,
    cluster_hardware,
    failure_profile,
    goodput,
    read_profile_file,
    recovery_policy,
    simulate,
)
from lakh.reliability.profiles import read_profile, read_shape
from lakh.spec import load_cluster
from lakh.spec.cluster import Failures

PROFILE = {
    "name": "ours",
    "title": "our fleet",
    "definition": "a stop of the job",
    "counts": "interruptions",
    "accelerators_per_node": 8,
    "node_count": 100,
    "exposure_node_days": 9000,
    "status": "measured",
    "source": "our log",
    "growth_exponent": 0.0,
    "process_restart_share": 0.5,
    "modes": [{"name": "dead accelerator", "component": "accelerator", "count": 30}],
    "shape": "stepfun",
}


def refused(changes: dict) -> str:
    with pytest.raises(SpecError) as caught:
        read_profile(PROFILE | changes, where="ours.yaml")
    return str(caught.value)


def test_a_profile_of_ones_own_is_read(tmp_path: Path):
    path = tmp_path / "ours.yaml"
    path.write_text(yaml.safe_dump(PROFILE), encoding="utf-8")
    profile = read_profile_file(path)
    rate = profile.modes[0].rate_per_node_s
    assert rate.value * 9000 * 86_400 == pytest.approx(30)
    assert rate.low * 9000 * 86_400 == pytest.approx(21.6, abs=0.1)  # Garwood's 90 % interval of 30 counted
    assert rate.high * 9000 * 86_400 == pytest.approx(40.7, abs=0.1)


def test_every_problem_of_a_profile_is_named_at_once():
    text = refused(
        {
            "counts": "interuptions",
            "node_count": 0,
            "modes": [
                {"name": "a", "component": "acelerator", "count": 3},
                {"name": "b", "component": "nic", "signal": "bang", "rate": -1},
                {"name": "c", "component": "nic"},
                {"name": "d", "component": "nic", "count": 1, "colour": "red"},
            ],
        }
    )
    assert (
        "ours.yaml: counts: found 'interuptions'; accepted: interruptions, faults. Did you mean 'interruptions'?"
        in text
    )
    assert "ours.yaml: node_count: found 0; accepted: a whole number of 1 or more." in text
    assert "modes[0].component: found 'acelerator'" in text
    assert "Did you mean 'accelerator'?" in text
    assert "modes[1].signal: found 'bang'; accepted: crash, hang, silent, planned." in text
    assert "modes[1].rate.value: found -1" in text
    assert "modes[2]: found ['component', 'name']; accepted: either count or rate" in text
    assert "modes[3].colour: found 'red'" in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"modes": []}, "modes: found []; accepted: one failure mode or more."),
        ({"modes": {"a": 1}}, "modes: found {'a': 1}; accepted: a list."),
        ({"modes": ["x"]}, "modes[0]: found 'x'; accepted: a mapping of fields."),
        ({"source": ""}, "source: found ''; accepted: a text."),
        ({"definition": None}, "definition: found nothing; accepted: a text."),
        ({"shape": "stepfum"}, "Did you mean 'stepfun'?"),
        ({"process_restart_share": 1.5}, "process_restart_share.value: found 1.5; accepted: a value of 0 to 1."),
        ({"growth_exponent": {"value": 0.5, "low": 0.6, "high": 0.9}}, "accepted: low <= value <= high."),
        ({"status": "guess"}, "status: found 'guess'; accepted: vendor, measured, secondary, estimate."),
        ({"exposure_node_days": None}, "accepted: a rate; a count needs exposure_node_days in the file."),
        ({"moeds": []}, "Did you mean 'modes'?"),
    ],
)
def test_a_profile_is_refused_with_what_is_accepted(changes, said):
    assert said in refused(changes)


def test_a_profile_that_is_no_mapping_or_no_file_is_refused(tmp_path: Path):
    with pytest.raises(SpecError, match="a mapping of fields"):
        read_profile(["a"], where="ours.yaml")
    with pytest.raises(SpecError, match="a readable file"):
        read_profile_file(tmp_path / "absent.yaml")
    (tmp_path / "bad.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(SpecError, match="accepted: YAML"):
        read_profile_file(tmp_path / "bad.yaml")


def test_a_shape_is_refused_with_every_field_that_is_missing():
    with pytest.raises(SpecError) as caught:
        read_shape({"name": "x", "source": "y"}, where="x.yaml")
    for field in ("burst", "repair", "lemons", "early_life", "hang_share"):
        assert f"x.yaml: {field}" in str(caught.value)


@pytest.mark.parametrize(
    ("look_up", "name", "near"),
    [(failure_profile, "llama3-h100-16", "llama3-h100-16k"), (recovery_policy, "hot-spare", "hot-spares")],
)
def test_an_unknown_name_says_the_nearest(look_up, name, near):
    with pytest.raises(UnknownNameError, match=f"Did you mean '{near}"):
        look_up(name)


def test_a_request_names_every_problem():
    with pytest.raises(RequestError) as caught:
        goodput(
            accelerator_count=0,
            profile=failure_profile("llama3"),
            policy=recovery_policy("automated"),
            parameter_count=-1.0,
            step_s=0.0,
            intervals_s=(1.0, 2.0),
        )
    text = str(caught.value)
    assert "accelerator_count: found 0; accepted: 1 or more." in text
    assert "parameter_count: found -1.0; accepted: a number above 0." in text
    assert "step_s: found 0.0" in text
    assert "intervals_s: found (1.0, 2.0); accepted: 1 durations above 0, for shared-storage." in text


def test_a_simulation_refuses_what_it_cannot_run():
    job = build_job(
        profile=failure_profile("llama3"),
        policy=recovery_policy("automated"),
        hardware=Hardware(),
        accelerator_count=64,
        checkpoint_bytes=1e9,
    )
    with pytest.raises(RequestError) as caught:
        simulate(job, duration_s=0.0, trial_count=0, seed=0, gaps="odd", clock="sun")  # type: ignore[arg-type]
    assert len(caught.value.problems) == 4


def test_policies_and_hardware_refuse_impossible_values():
    with pytest.raises(RequestError, match="diagnosis_s: found -1"):
        replace(recovery_policy("automated"), diagnosis_s=-1.0)
    with pytest.raises(RequestError, match="tiers"):
        replace(recovery_policy("automated"), tiers=("shared-storage", "peer-memory"))
    with pytest.raises(RequestError, match="spare_node_count: found -3"):
        replace(recovery_policy("automated"), spare_node_count=-3)
    with pytest.raises(RequestError, match="nic_bytes_per_s: found 0"):
        Hardware(nic_bytes_per_s=0)


def test_a_cluster_gives_its_storage_its_network_and_its_profile():
    cluster = load_cluster("jd-cloud-100k")
    hardware = cluster_hardware(cluster)
    assert cluster.storage is not None
    assert hardware.storage_write_bytes_per_s == cluster.storage.write_bytes_per_s.value
    assert hardware.accelerators_per_node == 8
    assert cluster_failures(cluster).name == "undisclosed"
    llama = replace(cluster, failures=Failures(profile="llama3"))
    assert cluster_failures(llama).name == "llama3-h100-16k"


def test_a_clusters_own_failure_rates_replace_the_profiles_and_keep_the_rest():
    stated = {"hbm": exact(88_768 * 3600.0, "second", status="measured", source="arXiv:2503.11901")}
    cluster = replace(
        load_cluster("h100-16k"), failures=Failures(profile="llama3", mean_time_between_failures_s=stated)
    )
    profile, before = cluster_failures(cluster), failure_profile("llama3")

    def rate(of, component):
        return sum(mode.rate_per_node_s.value for mode in of.modes if mode.component == component)

    assert rate(profile, "hbm") == pytest.approx(8 / (88_768 * 3600.0))
    assert rate(profile, "accelerator") == rate(before, "accelerator")


def test_a_cluster_that_names_an_unknown_profile_is_told_which_field():
    cluster = replace(load_cluster("h100-16k"), failures=Failures(profile="lama3-h100-16k"))
    with pytest.raises(
        UnknownNameError, match=r"failures\.profile: found 'lama3-h100-16k'.*Did you mean 'llama3-h100-16k'"
    ):
        cluster_failures(cluster)


def test_a_profile_of_hundreds_of_modes_is_simulated():
    modes = [{"name": f"mode {i}", "component": "host", "rate": 0.05} for i in range(200)]
    raw = {key: value for key, value in PROFILE.items() if key != "exposure_node_days"} | {"modes": modes}
    job = build_job(
        profile=read_profile(raw, where="ours.yaml"),
        policy=recovery_policy("automated"),
        hardware=Hardware(),
        accelerator_count=800,
        checkpoint_bytes=1e11,
    )
    assert len(job.events) > 256
    trials = simulate(job, duration_s=30 * 86_400.0, trial_count=200, seed=1, gaps="exponential")
    expected = job.unplanned_rate_per_s * 30 * 86_400.0
    assert trials.unplanned_stop_count.mean() == pytest.approx(expected, rel=0.05)
