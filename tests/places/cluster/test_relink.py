"""Other rates of a cluster's links, for as long as something is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.benchmarks import benchmark_named
from seatrial.errors import UsageError
from seatrial.places.cluster.namespaces import ClusterError
from seatrial.places.cluster.network import burst, links_at, shaping
from seatrial.places.cluster.shape import LinkShape
from seatrial.plan.environment_axes import choice_of, environment_value
from seatrial.plan.files import YamlNode


def test_the_rate_is_part_of_the_environment_of_ranks() -> None:
    node = YamlNode("10Gbit", 1, "10Gbit")
    value = environment_value("cluster.link", node)
    choice = choice_of({"cluster.link": value}, benchmark_named("mpi.bandwidth"), {})
    assert choice.mpi_settings == (("cluster.link", "10gbit"),)
    with pytest.raises(UsageError, match="not the rate of a link"):
        environment_value("cluster.link", YamlNode("fast", 1, "fast"))


def test_without_a_cluster_nothing_is_changed(tmp_path: Path) -> None:
    with links_at(None, {}), links_at(None, {"SEATRIAL_CLUSTER": str(tmp_path)}):
        pass
    for variables in ({}, {"SEATRIAL_CLUSTER": str(tmp_path)}):
        with pytest.raises(ClusterError, match="on no node of a cluster"), links_at("1gbit", variables):
            pass
    assert not list(tmp_path.iterdir())


def test_the_bucket_follows_the_rate() -> None:
    (line,) = shaping("eth0", LinkShape(125e6))
    assert f"rate 1000000000bit burst {burst(LinkShape(125e6))} " in line
