"""Search spaces: points are schedulers that can be parsed; ranges and values."""

import numpy as np
import pytest

from berthline.errors import ConfigError, PolicyError
from berthline.learn.tuning.search_space import SPACES, read_parameter, read_space
from berthline.policies.scheduler import Scheduler


@pytest.mark.parametrize("space", SPACES.values(), ids=list(SPACES))
def test_every_point_is_a_scheduler(space):
    random = np.random.default_rng(0)
    size = len(space.parameters)
    for point in [np.zeros(size), np.ones(size), *random.random((20, size))]:
        text = space.scheduler(point)
        assert "{" not in text
        Scheduler.parse(text)
        values = space.values(point)
        for parameter in space.parameters:
            assert parameter.low <= values[parameter.name] <= parameter.high


def test_the_start_is_where_it_says():
    for space in SPACES.values():
        expected = {p.name: p.start for p in space.parameters}
        assert space.values(space.start) == pytest.approx(expected, rel=0.01)


def test_numbers_are_written_with_three_figures_and_plain_signs():
    space = read_space(None, "[estimate + {a} * gpus - {b} * wait]", ["a=-1:1", "b=-4:0"])
    assert space.scheduler([0.1234, 0.3333]) == "[estimate - 0.753 * gpus + 2.67 * wait]"
    assert space.scheduler([1.0, 1.0]) == "[estimate + 1 * gpus - 0 * wait]"


def test_changed_signs_change_no_value():
    space = read_space(None, "[estimate + {a} * gpus]", ["a=-1:1"])
    written = Scheduler.parse(space.scheduler([0.25])).order
    meant = Scheduler.parse("[estimate + -0.5 * gpus]").order
    words = {"estimate": 7.3, "gpus": 3.0}
    assert written.evaluate(words.__getitem__) == meant.evaluate(words.__getitem__)


def test_a_logarithmic_range_has_its_geometric_mean_in_the_middle():
    parameter = read_parameter("T=100:10000:log")
    assert parameter.value(0.5) == pytest.approx(1000)
    assert parameter.share(1000) == pytest.approx(0.5)
    assert parameter.start == pytest.approx(1000)
    assert read_parameter("T=0:10:2").start == 2


def test_ranges_of_a_named_space_can_be_changed():
    space = read_space("lane", None, ["T=10:20"])
    assert space.values([0.5, 1.0, 0.5])["T"] == 20
    with pytest.raises(ConfigError, match="has no parameter 'x'"):
        read_space("lane", None, ["x=0:1"])


@pytest.mark.parametrize(
    "text", ["p", "p=1", "p=2:1", "p=0:1:log", "p=0:1:5", "p=0:x", "p=0:inf", "=0:1", "p=0:1:0:1"]
)
def test_malformed_ranges_are_refused(text):
    with pytest.raises(ConfigError, match="cannot read the range"):
        read_parameter(text)


def test_texts_that_do_not_go_with_their_ranges_are_refused():
    with pytest.raises(ConfigError, match="no range for q"):
        read_space(None, "[estimate * {p} + {q}]", ["p=0:1"])
    with pytest.raises(ConfigError, match="q is not in the text"):
        read_space(None, "[estimate * {p}]", ["p=0:1", "q=0:1"])
    with pytest.raises(ConfigError, match="no number is left open"):
        read_space(None, "sjf+easy", [])
    with pytest.raises(ConfigError, match="p is given twice"):
        read_space(None, "[estimate * {p}]", ["p=0:1", "p=0:2"])
    with pytest.raises(PolicyError, match="estimat"):
        read_space(None, "[estimat * {p}]", ["p=0:1"])
    with pytest.raises(ConfigError, match="unknown search space 'gat'"):
        read_space("gat", None, [])
