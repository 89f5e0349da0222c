"""Build the documentation site from the pages of the repository: `make docs-site`.

The pages are written for the repository's web page. For the site they are copied to a folder in
which Sphinx finds them, and on the way:

- pages of the repository's root (README, CONTRIBUTING, ...) become pages of the site;
- links to files that are not pages lead to the repository's web page;
- the navigation is made from the sections and links of index.md;
- the API reference is made from the public names.

A broken link, a broken anchor, or a page that would load anything from elsewhere is an error.
"""

from __future__ import annotations

import argparse
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "urls"
]["Repository"]
ROOT_PAGES = {
    name: name.lower() for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
}
"""Files of the repository's root that are pages of the site, and their names there."""
API = "reference/api.md"
COPIED = {".md", ".gif", ".png", ".svg", ".csv"}
"""Kinds of files in docs/ that are part of the site."""

_LINK = re.compile(r"(\[[^\]\[]*\]\()([^()\s]+)(\))")
_FENCED = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


# ---- pages ------------------------------------------------------------------------------------


def in_repository(page: str, link: str) -> str:
    """Return the file that a relative link of a page means, from the repository's root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def in_site(file: str) -> str | None:
    """Return the name of a file in the site, or None if it is not part of it."""
    if file in ROOT_PAGES:
        return ROOT_PAGES[file]
    if file.startswith("docs/") and Path(file).suffix in COPIED:
        return file.removeprefix("docs/")
    return None


def site_page(page: str, text: str) -> str:
    """Return the text of a page with its links as the site needs them.

    Args:
        page: the page, from the repository's root.
        text: its Markdown text.
    """
    here = posixpath.dirname(in_site(page) or "")

    def site_link(match: re.Match[str]) -> str:
        path, mark, anchor = match[2].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return match[0]
        file = in_repository(page, path)
        name = in_site(file)
        if name is not None:
            target = posixpath.relpath(name, here or ".")
        elif (ROOT / file).exists():
            target = f"{REPOSITORY}/{'tree' if (ROOT / file).is_dir() else 'blob'}/main/{file}"
        else:
            raise SystemExit(f"error: a link leads nowhere: {page}: {match[2]}")
        return f"{match[1]}{target}{mark}{anchor}{match[3]}"

    parts = _FENCED.split(text)  # the odd ones are fenced blocks
    return "".join(part if at % 2 else _LINK.sub(site_link, part) for at, part in enumerate(parts))


def navigation(index: str) -> str:
    """Return one hidden table of contents for each section of index.md."""
    parts = []
    first, *sections = re.split(r"^## ", index, flags=re.MULTILINE)
    for section in ["\n" + first, *sections]:
        title, _, text = section.partition("\n")
        pages = [in_site(in_repository("docs/index.md", found[1])) for found in _LINK.findall(text)]
        if title == "Reference":
            pages.append(API)
        lines = [page for page in pages if page and page.endswith(".md")]
        caption = [f":caption: {title}"] if title else []
        parts.append("\n".join(["```{toctree}", ":hidden:", *caption, "", *lines, "```"]))
    return "\n\n".join(parts)


def api_reference() -> str:
    """Return the page that shows the signature and docstring of every public name."""
    from public_api import public_names

    lines = [
        "# Python: signatures and docstrings",
        "",
        "Every public name, written from its docstring. [Python](python.md) is the overview: it",
        "says what is public.",
    ]
    directives = {"function": "autofunction", "exception": "autoexception", "class": "autoclass"}
    namespace = ""
    for public in public_names():
        if public.namespace != namespace:
            namespace = public.namespace
            lines += ["", f"## {namespace}"]
        directive = directives.get(public.kind, "autodata")
        options = ["   :members:"] if directive == "autoclass" else []
        entry = [f".. {directive}:: {public.path}", *options]
        lines += ["", f"### {public.name}", "", "```{eval-rst}", *entry, "```"]
    return "\n".join(lines) + "\n"


def write_sources(out: Path) -> None:
    """Write everything that Sphinx reads to an empty folder."""
    shutil.rmtree(out, ignore_errors=True)
    docs = [
        path for path in sorted((ROOT / "docs").rglob("*")) if path.suffix in COPIED
    ]  # fmt: skip
    for path in [*docs, *(ROOT / name for name in ROOT_PAGES)]:
        page = path.relative_to(ROOT).as_posix()
        target = out / str(in_site(page))
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = path.read_text(encoding="utf-8")
            written = site_page(page, text)
            if page == "docs/index.md":
                written += "\n" + navigation(text) + "\n"
            target.write_text(written, encoding="utf-8")
        else:
            shutil.copyfile(path, target)
    (out / API).write_text(api_reference(), encoding="utf-8")


# ---- what the site loads ----------------------------------------------------------------------

_OUTSIDE = re.compile(r"(?:https?:)?//[^\s\"')]+")
_CSS_LOAD = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")
_LOADING = {"link": ("href",), "object": ("data",), "video": ("src", "poster"), "use": ("href",)}
"""Elements that load something by another attribute than src and srcset."""
_ONLY_NAMED = {"alternate", "author", "canonical", "edit", "license", "next", "prev", "search"}
"""What `<link rel=...>` names without loading it."""


class _Loads(HTMLParser):
    """Collects what a page loads when it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.in_style = tag == "style"
        self.found += _CSS_LOAD.findall(given.get("style", ""))
        if tag == "link" and set(given.get("rel", "").split()) & _ONLY_NAMED:
            return
        for attribute in ("src", "srcset", *_LOADING.get(tag, ())):
            self.found += _OUTSIDE.findall(given.get(attribute, ""))

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.found += _CSS_LOAD.findall(data)


def loads_from_elsewhere(site: Path) -> Iterator[str]:
    """Yield what a built site would load from other hosts, as `file: address`."""
    for path in sorted(site.rglob("*")):
        if path.suffix not in {".html", ".css", ".svg"}:
            continue
        text = path.read_text(encoding="utf-8")
        found = _CSS_LOAD.findall(text) if path.suffix == ".css" else []
        if path.suffix != ".css":
            page = _Loads()
            page.feed(text)
            found = page.found
        yield from (f"{path.relative_to(site).as_posix()}: {address}" for address in found)


# ---- the build --------------------------------------------------------------------------------


def run_sphinx(sources: Path, out: Path) -> int:
    """Build HTML from a folder of sources; return the exit code, not 0 if there was a warning."""
    shutil.rmtree(out, ignore_errors=True)
    strict = ["--fail-on-warning", "--keep-going", "--fresh-env", "--quiet"]
    command = [sys.executable, "-m", "sphinx", "--builder", "html", *strict]
    command += ["--conf-dir", str(ROOT / "docs" / "site"), "--doctree-dir", f"{sources}-parsed"]
    return subprocess.run([*command, str(sources), str(out)]).returncode


def build(out: Path) -> int:
    """Build the site; return the exit code."""
    sources = out.parent / f"{out.name}-source"
    write_sources(sources)
    if code := run_sphinx(sources, out):
        return code
    if found := list(loads_from_elsewhere(out)):
        sys.stderr.write("\n  ".join(["error: pages load from elsewhere:", *found]) + "\n")
        return 1
    sys.stdout.write(f"written: {out / 'index.html'}\n")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="a folder")
    sys.exit(build(parser.parse_args().out))
