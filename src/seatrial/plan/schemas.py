"""The published JSON schemas of the files that users write.

They are generated when the package is built (hatch_build.py); `python -m seatrial.plan.schemas KIND` prints one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from seatrial.plan.declaration_file import declaration_schema
from seatrial.plan.image_file import image_schema
from seatrial.plan.site_file import site_schema
from seatrial.plan.study_schema import study_schema
from seatrial.plan.topology_file import topology_schema

SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "study": study_schema,
    "site": site_schema,
    "benchmark": declaration_schema,
    "image": image_schema,
    "topology": topology_schema,
}
"""Kind of file -> its schema."""

if __name__ == "__main__":
    print(json.dumps(SCHEMAS[sys.argv[1]](), indent=1, ensure_ascii=False))
