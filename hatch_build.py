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
        from seatrial.plan.declaration_schema import declaration_schema
        from seatrial.plan.image_schema import image_schema
        from seatrial.plan.site_schema import site_schema
        from seatrial.plan.study_schema import study_schema
        from seatrial.plan.topology_schema import topology_schema
        from seatrial.report.schemas import DOCUMENTS, schema

        schemas = {
            "plan/schemas/study-1": study_schema(),
            "plan/schemas/site-1": site_schema(),
            "plan/schemas/benchmark-1": declaration_schema(),
            "plan/schemas/topology-1": topology_schema(),
            "plan/schemas/image-1": image_schema(),
        }
        schemas |= {f"report/schemas/{name}": schema(name) for name in DOCUMENTS}
        folder = Path(tempfile.mkdtemp(prefix="seatrial-schemas-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        for name, content in schemas.items():
            schema_file = folder / f"{name.replace('/', '-')}.json"  # documents and files may have the same name
            schema_file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            build_data["force_include"][str(schema_file)] = f"seatrial/{name}.json"
