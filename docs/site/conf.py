"""Settings of the documentation site (Sphinx with the theme Furo); `make docs-site` uses them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer

PROJECT = tomllib.loads(
    (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
)["project"]

project = "Berthline"
author = project_copyright = "The Berthline authors"
version = release = PROJECT["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]

# Pages: Markdown as the repository's web page shows it, with the same anchors.
myst_heading_anchors = 6
smartquotes = False  # options begin with two hyphens


# The API reference.
default_role = "code"  # a name in single backticks in a docstring
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_use_ivar = True
napoleon_attr_annotations = False  # types of attributes: in the signature
napoleon_use_rtype = False
napoleon_preprocess_types = True
python_maximum_signature_line_length = 80

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"Berthline {version}"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "source_repository": PROJECT["urls"]["Repository"],
    "source_branch": "main",
    "source_directory": "docs/",
    "top_of_page_buttons": [],
    "light_css_variables": {"color-brand-primary": "#0b6e6e", "color-brand-content": "#0b6e6e"},
    "dark_css_variables": {"color-brand-primary": "#4fc3c3", "color-brand-content": "#4fc3c3"},
}

_ARRAY = re.compile(
    r"~?numpy\.ndarray\[tuple\[~?(?:typing\.)?Any, \.\.\.\], "
    r"~?numpy\.dtype\[~?(?:numpy\.)?(\w+)\]\]"
)


def short(signature: str) -> str:
    """Return a signature as the source writes it: `NDArray[int32]`, names without their modules."""
    signature = _ARRAY.sub(r"NDArray[\1]", signature).replace("<factory>", "...")
    return re.sub(r"~(?:\w+\.)*(\w+)", r"\1", signature)


def shorten(*event: Any) -> tuple[str, str] | None:
    """Shorten the signature of a public name, which is the last two arguments of the event."""
    signature, returned = event[-2:]
    return None if signature is None else (short(signature), short(returned or ""))


def setup(app: Any) -> None:
    """Register what Sphinx calls."""
    app.add_lexer("csv", TextLexer)
    app.connect("autodoc-process-signature", shorten)
