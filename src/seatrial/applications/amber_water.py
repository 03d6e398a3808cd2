"""A box of water in AMBER's file formats, made here: what sander, pmemd and OpenMM run on without any download.

The molecules are TIP3P (Jorgensen et al., J. Chem. Phys. 79, 926 (1983)), rigid, on the lattice of cubic ice: oxygen
atoms as in diamond, every molecule donating its hydrogen bonds along +x, which obeys the ice rules. A cell is 4 x 4 x 4
lattice cells (512 molecules, 2.54 nm). A box of n^3 cells has n^3 times the energy of one cell, since it is the same
crystal; 0.8 nm, the cutoff, lies midway between two shells of neighbours (7.78 and 8.25 A), so that rounding decides
nothing. The lattice is shifted, so that no atom is at a boundary: sander of 2026 loses pairs there (its energy of the
unshifted crystal is a quarter too high).

The formats are those of https://ambermd.org/FileFormats.php (parameter/topology file, and restart file as text).
Lengths in A, energies in kcal/mol, masses in u.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

LATTICE_A = 6.35
LATTICE_CELLS = 4
MOLECULES_OF_A_CELL = 8 * LATTICE_CELLS**3
ATOMS_OF_A_CELL = 3 * MOLECULES_OF_A_CELL
EDGE_A = LATTICE_A * LATTICE_CELLS
ENERGY_OF_A_MOLECULE = -12.564
"""At the start, in kcal/mol; computed with the double-precision platform of OpenMM 8.6.1, tolerance of the Ewald sum
1e-6. sander of AmberTools 26 has -12.560 with its own defaults."""
ENERGY_TOLERANCE = 0.02
"""What the accuracy of the Ewald sum may change."""
TOPOLOGY, COORDINATES = "water.prmtop", "water.inpcrd"

_CHARGES = (-0.834, 0.417, 0.417)
_SHIFT_A = 0.9
_UNIT_OF_CHARGE = 18.2223
"""AMBER stores charges times the square root of the Coulomb constant in kcal/mol A."""
_MASSES = (16.0, 1.008, 1.008)
_SIGMA_A, _EPSILON = 3.15061, 0.1521
_OH_A, _HOH = 0.9572, math.radians(104.52)
_HH_A = 2 * _OH_A * math.sin(_HOH / 2)
_FCC = ((0.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0))
_ACROSS = (((0, 1, 1), (0, -1, -1)), ((0, 1, -1), (0, -1, 1)))
"""Per sublattice: the sides to which the hydrogen bonds lean, y and z."""


def topology(cells: int) -> bytes:
    """The parameter/topology file of `cells`^3 cells."""
    molecules = MOLECULES_OF_A_CELL * cells**3
    atoms = 3 * molecules
    firsts = [3 * molecule for molecule in range(molecules)]  # atoms counted from 0
    bonds = [
        number
        for first in firsts
        for a, b, kind in ((0, 1, 1), (0, 2, 1), (1, 2, 2))
        for number in (3 * (first + a), 3 * (first + b), kind)
    ]
    excluded = [number for first in firsts for number in (first + 2, first + 3, first + 3, 0)]
    pointers = [atoms, 2, len(bonds) // 3, *([0] * 7), len(excluded), molecules, *([0] * 3), 2, 0, 0, 2, *([0] * 8)]
    pointers += [1, 3, 0, 0]
    six = _SIGMA_A**6
    edge = EDGE_A * cells
    parts: list[tuple[str, str, Iterable[object]]] = [
        ("TITLE", "20a4", ["water"]),
        ("POINTERS", "10I8", pointers),
        ("ATOM_NAME", "20a4", ["O", "H1", "H2"] * molecules),
        ("CHARGE", "5E16.8", [charge * _UNIT_OF_CHARGE for charge in _CHARGES] * molecules),
        ("ATOMIC_NUMBER", "10I8", [8, 1, 1] * molecules),
        ("MASS", "5E16.8", list(_MASSES) * molecules),
        ("ATOM_TYPE_INDEX", "10I8", [1, 2, 2] * molecules),
        ("NUMBER_EXCLUDED_ATOMS", "10I8", [2, 1, 1] * molecules),
        ("NONBONDED_PARM_INDEX", "10I8", [1, 2, 2, 3]),
        ("RESIDUE_LABEL", "20a4", ["WAT"] * molecules),
        ("RESIDUE_POINTER", "10I8", [first + 1 for first in firsts]),
        ("BOND_FORCE_CONSTANT", "5E16.8", [553.0, 553.0]),
        ("BOND_EQUIL_VALUE", "5E16.8", [_OH_A, _HH_A]),
        *((name, "5E16.8", []) for name in _NO_NUMBERS),
        ("SOLTY", "5E16.8", [0.0, 0.0]),
        ("LENNARD_JONES_ACOEF", "5E16.8", [4 * _EPSILON * six * six, 0.0, 0.0]),
        ("LENNARD_JONES_BCOEF", "5E16.8", [4 * _EPSILON * six, 0.0, 0.0]),
        ("BONDS_INC_HYDROGEN", "10I8", bonds),
        *((name, "10I8", []) for name in _NO_LISTS),
        ("EXCLUDED_ATOMS_LIST", "10I8", excluded),
        *((name, "5E16.8", []) for name in ("HBOND_ACOEF", "HBOND_BCOEF", "HBCUT")),
        ("AMBER_ATOM_TYPE", "20a4", ["OW", "HW", "HW"] * molecules),
        ("TREE_CHAIN_CLASSIFICATION", "20a4", ["BLA"] * atoms),
        ("JOIN_ARRAY", "10I8", [0] * atoms),
        ("IROTAT", "10I8", [0] * atoms),
        ("SOLVENT_POINTERS", "3I8", [0, molecules, 1]),
        ("ATOMS_PER_MOLECULE", "10I8", [3] * molecules),
        ("BOX_DIMENSIONS", "5E16.8", [90.0, edge, edge, edge]),
        ("RADIUS_SET", "1a80", ["modified Bondi radii (mbondi)"]),
        ("RADII", "5E16.8", [1.5, 0.8, 0.8] * molecules),
        ("SCREEN", "5E16.8", [0.85, 0.85, 0.85] * molecules),
    ]
    lines = ["%VERSION  VERSION_STAMP = V0001.000  DATE = 01/01/26  00:00:00"]
    for name, form, values in parts:
        lines += [f"%FLAG {name}", f"%FORMAT({form})", *_rows(form, list(values))]
    return "".join(f"{line}\n" for line in lines).encode()


_NO_NUMBERS = (
    *("ANGLE_FORCE_CONSTANT", "ANGLE_EQUIL_VALUE", "DIHEDRAL_FORCE_CONSTANT", "DIHEDRAL_PERIODICITY"),
    *("DIHEDRAL_PHASE", "SCEE_SCALE_FACTOR", "SCNB_SCALE_FACTOR"),
)
_NO_LISTS = (
    *("BONDS_WITHOUT_HYDROGEN", "ANGLES_INC_HYDROGEN", "ANGLES_WITHOUT_HYDROGEN", "DIHEDRALS_INC_HYDROGEN"),
    "DIHEDRALS_WITHOUT_HYDROGEN",
)


def _rows(form: str, values: Sequence[object]) -> Iterator[str]:
    """The lines of a section; an empty one has an empty line."""
    count = {"20a4": 20, "10I8": 10, "5E16.8": 5, "3I8": 3, "1a80": 1}[form]
    spelled = {
        "20a4": lambda value: f"{value:<4}",
        "1a80": lambda value: f"{value:<80}",
        "5E16.8": lambda value: f"{value:16.8E}",
    }.get(form, lambda value: f"{value:8d}")
    for start in range(0, max(len(values), 1), count):
        yield "".join(map(spelled, values[start : start + count]))


def coordinates(cells: int) -> bytes:
    """The starting positions of `cells`^3 cells, as a restart file without velocities."""
    edge = EDGE_A * cells
    numbers = [coordinate for atom in _atoms(LATTICE_CELLS * cells) for coordinate in atom]
    lines = ["water", f"{len(numbers) // 3:6d}"]
    lines += ["".join(f"{number:12.7f}" for number in numbers[i : i + 6]) for i in range(0, len(numbers), 6)]
    lines.append("".join(f"{number:12.7f}" for number in (edge, edge, edge, 90.0, 90.0, 90.0)))
    return "".join(f"{line}\n" for line in lines).encode()


def first_atoms(molecules: int) -> list[tuple[float, float, float]]:
    """The positions of the first molecules, 8 of a lattice cell at most: O, H, H of each, in A."""
    return list(itertools.islice(_atoms(1), 3 * molecules))


def _atoms(lattice_cells: int) -> Iterator[tuple[float, float, float]]:
    """O, H, H of each molecule. Both bonds of a molecule lean to +x, at half the angle of the molecule to it."""
    along, aside = _OH_A * math.cos(_HOH / 2), _OH_A * math.sin(_HOH / 2) / math.sqrt(2)
    span = range(lattice_cells)
    for i, j, k in ((i, j, k) for i in span for j in span for k in span):
        for offset in _FCC:
            for sublattice, sides in enumerate(_ACROSS):
                shift = 0.25 * sublattice
                x, y, z = (_SHIFT_A + LATTICE_A * (n + part + shift) for n, part in zip((i, j, k), offset, strict=True))
                yield x, y, z
                for _, side_y, side_z in sides:
                    yield x + along, y + aside * side_y, z + aside * side_z
