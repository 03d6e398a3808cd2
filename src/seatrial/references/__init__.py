"""Published values, shipped with seatrial or added by a site: from other machines, without intervals, with sources.

`loader` reads them, `matching` finds those for a figure, `words` formats them.
"""

from seatrial.references.loader import all_references, reference_named
from seatrial.references.words import figures_of_reference, reference_side, references_for

__all__ = ["all_references", "figures_of_reference", "reference_named", "reference_side", "references_for"]
