"""Checks of code that others write against Berthline's contracts."""

from berthline.deploy.systems.adapter_check import adapter_check as adapter_check
from berthline.deploy.systems.simulated.connect_simulated import (
    simulated_system as simulated_system,
)
from berthline.deploy.systems.simulated.faults import Faults as Faults
from berthline.deploy.systems.simulated.faults import FaultyAdapter as FaultyAdapter

__all__ = ["Faults", "FaultyAdapter", "adapter_check", "simulated_system"]
