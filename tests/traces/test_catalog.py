"""The catalog of public traces, and fetching from a publisher that runs in this process."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import re
import socket
import threading

import msgspec
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import ConfigError, OutputError
from berthline.traces import fetch as fetching
from berthline.traces.catalog import TraceFile, catalog, public_trace
from berthline.traces.fetch import FetchError, fetch_trace
from berthline.traces.formats.format_table import FORMATS

SHARED = SHARED_TRACES

CONTENT = b"1 0 -1 100 2 -1 -1 2 200 -1 1 1 1 -1 -1 -1 -1 -1\n" * 1000
PACKED = gzip.compress(CONTENT, mtime=1)


class Publisher(http.server.BaseHTTPRequestHandler):
    """Sends what `pages` holds; a page may lie about its length."""

    pages: dict[str, bytes]
    stated_length: int | None

    def do_GET(self):
        content = self.pages.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(self.stated_length or len(content)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """Whatever stands between this machine and the world must not see the tests."""
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def publisher():
    """A publisher on a free port; its address and its pages."""
    pages = {"/jobs.swf": CONTENT, "/jobs.swf.gz": PACKED, "/parts/more.swf": CONTENT[:49]}
    handler = type("Handler", (Publisher,), {"pages": pages, "stated_length": None})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    server.server_close()
    thread.join()


def trace_of(base, *files):
    return msgspec.structs.replace(public_trace("hpc2n"), base=base, files=files)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class TestCatalog:
    def test_every_trace_is_described(self):
        assert len(catalog()) >= 12
        for trace in catalog().values():
            assert trace.jobs > 0
            assert trace.files
            for text in (trace.title, trace.publisher, trace.licence, trace.cite, trace.lost):
                assert text
            assert re.fullmatch(r"https://[\w./-]+", trace.page)
            assert trace.base.startswith("https://")

    def test_every_trace_can_be_read_by_a_format_there_is(self):
        assert {trace.format for trace in catalog().values()} <= FORMATS.keys()

    @pytest.mark.parametrize("name", catalog())
    def test_checksums_and_addresses_have_the_right_form(self, name):
        trace = public_trace(name)
        for file in trace.files:
            assert re.fullmatch(r"([0-9a-f]{64})?", file.sha256)
            assert re.fullmatch(r"[\w./-]+", file.address)
            assert ".." not in file.address
            assert file.num_bytes is None or file.num_bytes > 0
        assert len({file.address for file in trace.files}) == len(trace.files)
        # What is to be loaded is fetched, or comes out of what is unpacked.
        assert trace.unpack or trace.load in {".", *(file.address for file in trace.files)}

    def test_an_unknown_name_is_refused_with_the_nearest(self):
        with pytest.raises(ConfigError) as caught:
            public_trace("hpcn2")
        assert "did you mean 'hpc2n'?" in caught.value.hint
        assert "berthline traces list" in caught.value.hint

    @pytest.mark.skipif(not SHARED.is_dir(), reason="shared trace files are not here")
    @pytest.mark.parametrize(
        ("trace", "address", "path"),
        [
            ("hpc2n", "HPC2N-2002-2.2-cln.swf.gz", "swf/HPC2N-2002-2.2-cln.swf.gz"),
            ("ctc-sp2", "CTC-SP2-1996-3.1-cln.swf.gz", "swf/CTC-SP2-1996-3.1-cln.swf.gz"),
            ("nasa-ipsc", "NASA-iPSC-1993-3.1-cln.swf.gz", "swf/NASA-iPSC-1993-3.1-cln.swf.gz"),
            ("lublin-256", "lublin_256.swf", "swf/lublin_256.swf.gz"),
            (
                "openb-2023",
                "openb_pod_list_default.csv",
                "alibaba_gpu_v2023/openb_pod_list_default.csv.gz",
            ),
            (
                "dlrm-2025",
                "disaggregated_DLRM_trace.csv",
                "alibaba_dlrm_v2025/disaggregated_DLRM_trace.csv.gz",
            ),
            ("spot-2026", "node_info_df.csv", "alibaba_spot_v2026/node_info_df.csv.gz"),
            (
                "google-2011",
                "job_events/part-00019-of-00500.csv.gz",
                "google_2011/job_events/part-00019-of-00500.csv.gz",
            ),
        ],
    )
    def test_checksums_are_those_of_the_real_files(self, trace, address, path):
        (file,) = (file for file in public_trace(trace).files if file.address == address)
        content = (SHARED / path).read_bytes()
        if file.unpacked or not address.endswith(".gz"):
            content = gzip.decompress(content)
        assert sha256(content) == file.sha256


class TestFetch:
    def test_files_are_fetched_checked_and_kept(self, publisher, tmp_path):
        base, handler = publisher
        trace = trace_of(
            base,
            TraceFile(address="jobs.swf", sha256=sha256(CONTENT)),
            TraceFile(address="jobs.swf.gz", sha256=sha256(CONTENT), unpacked=True),
            TraceFile(address="parts/more.swf"),
        )
        seen = []
        outcome = fetch_trace(trace, tmp_path / "new", progress=lambda *told: seen.append(told))
        assert set(outcome.values()) == {"fetched"}
        assert (tmp_path / "new/jobs.swf").read_bytes() == CONTENT
        assert (tmp_path / "new/jobs.swf.gz").read_bytes() == PACKED
        assert (tmp_path / "new/parts/more.swf").read_bytes() == CONTENT[:49]
        assert (len(CONTENT), len(CONTENT), "jobs.swf") in seen
        handler.pages.clear()
        assert set(fetch_trace(trace, tmp_path / "new").values()) == {"kept"}

    @pytest.mark.parametrize("unpacked", [False, True])
    def test_a_wrong_checksum_leaves_no_file(self, publisher, tmp_path, unpacked):
        base, _ = publisher
        name = "jobs.swf.gz" if unpacked else "jobs.swf"
        trace = trace_of(base, TraceFile(address=name, sha256="0" * 64, unpacked=unpacked))
        with pytest.raises(FetchError) as caught:
            fetch_trace(trace, tmp_path)
        assert sha256(CONTENT) in caught.value.what
        assert "0" * 64 in caught.value.expected
        assert "`check=False`" in caught.value.hint
        assert list(tmp_path.iterdir()) == []
        assert fetch_trace(trace, tmp_path, check=False) == {tmp_path / name: "fetched"}

    def test_damaged_gzip_is_not_taken(self, publisher, tmp_path):
        base, handler = publisher
        handler.pages["/jobs.swf.gz"] = PACKED[:-20]
        file = TraceFile(address="jobs.swf.gz", sha256=sha256(CONTENT), unpacked=True)
        with pytest.raises(FetchError, match="damaged"):
            fetch_trace(trace_of(base, file), tmp_path)

    def test_a_missing_page_is_told_with_the_way_round(self, publisher, tmp_path):
        base, _ = publisher
        trace = trace_of(base, TraceFile(address="gone.swf"))
        with pytest.raises(FetchError) as caught:
            fetch_trace(trace, tmp_path)
        error = caught.value
        assert error.exit_code == 1
        assert "404" in error.what
        assert error.where == f"{base}/gone.swf"
        assert trace.page in error.hint
        assert f"traces import {tmp_path / trace.load} --format swf --out hpc2n" in error.hint
        assert list(tmp_path.iterdir()) == []

    def test_a_refused_connection_is_told(self, tmp_path):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        trace = trace_of(f"http://127.0.0.1:{port}", TraceFile(address="jobs.swf"))
        with pytest.raises(FetchError) as caught:
            fetch_trace(trace, tmp_path)
        assert f"no connection to 127.0.0.1:{port}" in caught.value.what
        assert "is this machine offline?" in caught.value.what
        assert "network" in caught.value.expected
        assert list(tmp_path.iterdir()) == []

    def test_a_name_that_nobody_knows_is_told(self, tmp_path):
        # The top-level domain .invalid is promised never to exist, on any network or none.
        trace = trace_of("http://publisher.invalid", TraceFile(address="jobs.swf"))
        with pytest.raises(FetchError, match=r"no connection to publisher\.invalid"):
            fetch_trace(trace, tmp_path)

    def test_a_publisher_that_falls_silent_is_told(self, tmp_path, monkeypatch):
        monkeypatch.setattr(fetching, "TIMEOUT", 0.2)
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            base = f"http://127.0.0.1:{silent.getsockname()[1]}"
            with pytest.raises(FetchError, match="timed out"):
                fetch_trace(trace_of(base, TraceFile(address="jobs.swf")), tmp_path)

    def test_a_connection_that_breaks_leaves_no_file(self, publisher, tmp_path):
        base, handler = publisher
        handler.stated_length = len(CONTENT) + 1000
        with pytest.raises(FetchError) as caught:
            fetch_trace(trace_of(base, TraceFile(address="jobs.swf")), tmp_path)
        assert "broke after" in caught.value.what
        assert list(tmp_path.iterdir()) == []

    def test_another_file_of_that_name_is_not_overwritten(self, publisher, tmp_path):
        base, _ = publisher
        (tmp_path / "jobs.swf").write_text("mine")
        trace = trace_of(base, TraceFile(address="jobs.swf", sha256=sha256(CONTENT)))
        with pytest.raises(FetchError, match="a different one"):
            fetch_trace(trace, tmp_path)
        assert (tmp_path / "jobs.swf").read_text() == "mine"

    def test_a_folder_that_cannot_be_written_is_told(self, publisher, tmp_path):
        base, _ = publisher
        (tmp_path / "file").write_text("")
        with pytest.raises(OutputError, match="cannot write"):
            fetch_trace(trace_of(base, TraceFile(address="jobs.swf")), tmp_path / "file")
