"""What does a described cluster say about failures? From `cluster.yaml` to hardware figures and a failure profile."""

from __future__ import annotations

from lakh import catalog
from lakh.reliability.checkpoints import Hardware
from lakh.reliability.profiles import FailureProfile, failure_profile
from lakh.spec.cluster import Cluster

DEFAULT_PROFILE = "undisclosed"

_DEFAULTS = Hardware()


def cluster_hardware(cluster: Cluster) -> Hardware:
    """Bandwidths and sizes for checkpoints and correlated failures, of the cluster's most common node.

    What the cluster does not state keeps the default of `Hardware`; the whole of shared storage is the job's.
    """
    pool = max(cluster.pools, key=lambda pool: pool.accelerator_count)
    node = pool.node
    accelerator = catalog.accelerator(node.accelerator)
    block = pool.nodes_per_block or _DEFAULTS.nodes_per_block
    network = node.nic_count * node.nic_bytes_per_s.value / node.accelerator_count
    storage = cluster.storage
    return Hardware(
        accelerators_per_node=node.accelerator_count,
        nodes_per_block=block,
        nodes_per_row=block * pool.blocks_per_row if pool.blocks_per_row else max(block, _DEFAULTS.nodes_per_row),
        host_copy_bytes_per_s=0.5 * accelerator.pcie_bytes_per_s.value or _DEFAULTS.host_copy_bytes_per_s,
        nic_bytes_per_s=network or _DEFAULTS.nic_bytes_per_s,
        network_efficiency=cluster.fabric.protocol_efficiency.value,
        storage_write_bytes_per_s=storage.write_bytes_per_s.value if storage else _DEFAULTS.storage_write_bytes_per_s,
        storage_read_bytes_per_s=storage.read_bytes_per_s.value if storage else _DEFAULTS.storage_read_bytes_per_s,
    )


def cluster_failures(cluster: Cluster) -> FailureProfile:
    """The failure profile a cluster names, with the component rates it states; `undisclosed` where it names none.

    Raises:
        UnknownNameError: it names a profile that the catalogue does not hold
    """
    failures = cluster.failures
    where = cluster.origin or f"cluster {cluster.name}"
    named = failures.profile if failures and failures.profile else DEFAULT_PROFILE
    profile = failure_profile(named, where=f"{where}: failures.profile")
    if failures is None or not failures.mean_time_between_failures_s:
        return profile
    node = max(cluster.pools, key=lambda pool: pool.accelerator_count).node
    hardware = cluster_hardware(cluster)
    per_node = {
        "accelerator": float(node.accelerator_count),
        "hbm": float(node.accelerator_count),
        "sdc": float(node.accelerator_count),
        "nic": float(node.nic_count),
        "link": float(node.nic_count),
        "switch": 1.0 / hardware.nodes_per_block,
        "cooling": 1.0 / hardware.nodes_per_row,
        "software": 1.0 / max(cluster.node_count, 1),
    }
    return profile.with_component_mtbf(failures.mean_time_between_failures_s, per_node=per_node, where=where)
