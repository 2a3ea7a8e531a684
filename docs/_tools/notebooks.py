"""Run the notebooks of examples/notebooks offline and store what their cells print and draw.

`python -m docs._tools.notebooks`, which `make notebooks` runs, needs no notebook server: cells run in
order in one namespace, and the value of each cell's last expression is shown, figures as pictures.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"


def run(path: Path) -> dict[str, Any]:
    """The notebook with fresh outputs; an error in a cell is raised."""
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    space: dict[str, Any] = {"__name__": "notebook"}
    os.environ["COLUMNS"] = "100"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        count = 0
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                cell["execution_count"] = count
                cell["outputs"] = _outputs("".join(cell["source"]), space, count)
    return notebook


def _outputs(source: str, space: dict[str, Any], count: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    said = io.StringIO()
    value = None
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, "cell", "exec"), space)  # noqa: S102
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)  # noqa: S307
    found: list[dict[str, Any]] = []
    if said.getvalue():
        lines = said.getvalue().splitlines(keepends=True)
        found.append({"output_type": "stream", "name": "stdout", "text": lines})
    if value is not None:
        shown = {"execution_count": count, "metadata": {}, "data": _shown(value)}
        found.append({"output_type": "execute_result", **shown})
    return found


def _shown(value: Any) -> dict[str, Any]:
    if hasattr(value, "savefig"):
        stream = io.BytesIO()
        value.savefig(stream, format="png", dpi=90, metadata={"Software": None})
        return {"image/png": base64.b64encode(stream.getvalue()).decode(), "text/plain": "figure"}
    return {"text/plain": repr(value).splitlines(keepends=True)}


if __name__ == "__main__":
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        path.write_text(json.dumps(run(path), indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(path.relative_to(NOTEBOOKS.parents[1]))
