"""Tuning does not need torch, neither on import nor later."""

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

from berthline.learn import tuning

MODULES = [module.name for module in pkgutil.walk_packages(tuning.__path__, tuning.__name__ + ".")]
COMMAND = "berthline.cli.train.es"


def test_every_module_is_imported_without_torch() -> None:
    assert f"{tuning.__name__}.search" in MODULES
    code = "import sys; sys.modules['torch'] = None\n"
    code += "".join(f"import {name}\n" for name in [*MODULES, COMMAND])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_module_imports_torch_on_first_use() -> None:
    for path in sorted(Path(tuning.__path__[0]).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            assert not [name for name in names if name.split(".")[0] == "torch"], path
