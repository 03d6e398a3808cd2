"""Print the JSON schema of a document: `python -m seatrial.report.schemas results-1`."""

from __future__ import annotations

import json
import sys

from seatrial.report.schemas import DOCUMENTS, schema

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in DOCUMENTS:
        sys.exit(f"expected one of {', '.join(DOCUMENTS)}")
    print(json.dumps(schema(sys.argv[1]), indent=1, ensure_ascii=False))
