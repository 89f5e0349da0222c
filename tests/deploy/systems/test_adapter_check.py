"""adapter_check passes on the simulated system and fails on adapters that break the contract."""

import pytest
from tests.deploy.simulated_systems import jobs, system

from berthline.deploy.systems.adapter_check import ContractError
from berthline.deploy.systems.contract import DONE, Outcome
from berthline.testing import adapter_check

WORK = jobs(*[(0, 500, 8)] * 3, (1, 500, 4), (1, 900, 2), (2, 500, 16))


def test_simulated_system__keeps_the_contract():
    adapter = system(WORK)
    adapter.beat()
    adapter.wait(1)
    checked = adapter_check(adapter)
    assert "a start happens, and only once" in checked.done
    assert checked.left_out == ("a guard lifts what is held",)  # it is in this process


class Yes:
    """An adapter that says yes to everything."""

    def __init__(self, adapter):
        self._adapter = adapter

    def __getattr__(self, name):
        return getattr(self._adapter, name)

    def do(self, actions):
        self._adapter.do(actions)
        return [Outcome(DONE)] * len(actions)


def test_adapter_that_always_says_done__is_found():
    adapter = Yes(system(WORK))
    adapter.beat()
    adapter.wait(1)
    with pytest.raises(ContractError, match="a job that is not there"):
        adapter_check(adapter)
