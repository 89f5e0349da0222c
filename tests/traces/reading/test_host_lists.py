"""Lists of nodes as batch systems write them."""

import pytest

from berthline.errors import TraceError
from berthline.traces.reading.host_lists import expand_hosts


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("gpu01", ["gpu01"]),
        ("gpu[01-03]", ["gpu01", "gpu02", "gpu03"]),
        ("gpu[9-11,20]", ["gpu9", "gpu10", "gpu11", "gpu20"]),
        ("a1,b[1-2],c", ["a1", "b1", "b2", "c"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("dgx-a[1,3]-ib", ["dgx-a1-ib", "dgx-a3-ib"]),
    ],
)
def test_lists_are_expanded_in_their_order(text, hosts):
    assert expand_hosts(text) == hosts


@pytest.mark.parametrize("text", ["", "gpu[01-", "gpu[3-1]", "gpu[a-b]", "a,,b", "n[0-9999999]"])
def test_what_is_no_list_is_refused(text):
    with pytest.raises(TraceError, match="cannot read the list of nodes"):
        expand_hosts(text)
