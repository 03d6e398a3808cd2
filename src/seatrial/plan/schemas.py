"""The published JSON schemas of the files that users write.

They are generated when the package is built (hatch_build.py); `python -m seatrial.plan.schemas KIND` prints one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from seatrial.plan.declaration_file import FileModel
from seatrial.plan.file_model import schema_of
from seatrial.plan.image_file import ImageModel
from seatrial.plan.site_file import SiteModel
from seatrial.plan.study_schema import study_schema
from seatrial.plan.topology_file import TopologyModel

SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "study": study_schema,
    "site": partial(schema_of, SiteModel, "seatrial site, version 1"),
    "benchmark": partial(schema_of, FileModel, "seatrial benchmark, version 1"),
    "image": partial(schema_of, ImageModel, "seatrial image, version 1"),
    "topology": partial(schema_of, TopologyModel, "seatrial topology file, version 1"),
}
"""Kind of file -> its schema (draft 2020-12)."""

if __name__ == "__main__":
    print(json.dumps(SCHEMAS[sys.argv[1]](), indent=1, ensure_ascii=False))
