"""Published values that ship with seatrial, and those that a site adds: other machines, no intervals, with sources.

`loader` reads them, `matching` finds those that speak of a figure, `words` spells them.
"""

from seatrial.references.loader import all_references, reference_named
from seatrial.references.matching import figures_of_reference, reference_side, references_for

__all__ = ["all_references", "figures_of_reference", "reference_named", "reference_side", "references_for"]
