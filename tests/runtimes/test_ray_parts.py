"""How walks and machines are divided into tasks, and how long an interval is."""

import numpy as np
import pytest

from freewalk.errors import FreewalkError
from freewalk.runtimes.ray.cluster import Machine, slots
from freewalk.runtimes.ray.runtime import divided, pace_of
from freewalk.runtimes.ray.shipment import pack, unpack


def test_walks_are_divided_into_whole_blocks_or_at_least_one_walk_each():
    assert divided(100, 3) == [(0, 32), (32, 64), (64, 100)]
    assert divided(2, 7) == [(0, 1), (1, 2)]


def test_an_interval_is_long_enough_for_its_overhead():
    assert [pace_of(beside) for beside in (0.01, 0.2, 5.0, 100.0)] == [1.0, 4.0, 30.0, 200.0]


def test_as_many_tasks_at_a_time_as_machines_offer():
    machines = [Machine("a", cpus=8, gpus=0), Machine("b", cpus=4, gpus=0)]
    assert slots(machines, cpus=4) == 3
    with pytest.raises(FreewalkError, match="no machine of the cluster offers that"):
        slots(machines, cpus=9)


def test_a_view_is_sent_as_a_view():
    pytest.importorskip("ray")
    whole = np.arange(1000)
    sent = pack({"whole": whole, "upper": whole[500:]})
    assert [array.nbytes for array in sent.arrays] == [8000]
    assert unpack(sent)["upper"][:3].tolist() == [500, 501, 502]
