"""Build hook: generates the JSON schemas of the files that seatrial reads and of the documents that it prints."""

from __future__ import annotations

import atexit
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SchemaHook(BuildHookInterface):
    """Adds `seatrial/plan/schemas/{study,site,benchmark,topology,image}-1.json` and
    `seatrial/report/schemas/DOCUMENT-VERSION.json` to a wheel. A checkout needs none: it has the models."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before the archive is written. Errors propagate: a package without schemas would be broken."""
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root) / "src"))
        from seatrial.plan.schemas import SCHEMAS
        from seatrial.report.schemas import DOCUMENTS, schema

        schemas = {f"plan/schemas/{kind}-1": made() for kind, made in SCHEMAS.items()}
        schemas |= {f"report/schemas/{name}": schema(name) for name in DOCUMENTS}
        folder = Path(tempfile.mkdtemp(prefix="seatrial-schemas-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        for name, content in schemas.items():
            schema_file = folder / f"{name.replace('/', '-')}.json"  # documents and files may have the same name
            schema_file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            build_data["force_include"][str(schema_file)] = f"seatrial/{name}.json"
