"""C statements with which a wrapper writes a successful call to the trace.

The arguments have the names of the standard; N, W and `bytes` are as in `tables/traffic.py`. A trace holds only calls
that move messages, or in which a rank may wait for another.
"""

from __future__ import annotations

from seatrial.model.frozen import Frozen

_MADE_BY_ALL = {
    **dict.fromkeys(("Comm_dup", "Comm_dup_with_info", "Comm_split", "Comm_split_type", "Comm_create"), "newcomm"),
    "Cart_create": "comm_cart",
    "Cart_sub": "newcomm",
    "Graph_create": "comm_graph",
    **dict.fromkeys(("Dist_graph_create", "Dist_graph_create_adjacent"), "comm_dist_graph"),
}
"""Collective calls that create a communicator -> the argument that receives it."""

_ONLY_TIME = ("Win_", "File_", "Neighbor_", "Ineighbor_", "Comm_spawn", "Comm_accept", "Comm_connect", "Intercomm_")
_ONE_SIDED = frozenset(
    (
        *("Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap"),
        *("Rput", "Rget", "Raccumulate", "Rget_accumulate"),
        *("Comm_create_group", "Comm_create_from_group", "Comm_idup"),
    )
)
_WAITS = frozenset(
    (
        *("Wait", "Test", "Waitany", "Testany", "Waitall", "Testall", "Waitsome", "Testsome", "Start", "Startall"),
        *("Mrecv", "Probe", "Iprobe", "Mprobe", "Improbe"),
    )
)
"""These need no statement: they are recorded where requests are started and completed."""


class Traced(Frozen):
    """`statements` after the call. `always`: the call is in the trace even if they record nothing."""

    statements: str
    always: bool = False


def traced(base: str) -> Traced | None:
    """The statements of a function by its name without `_c`; None if traces do not record it."""
    name = base.removeprefix("MPI_")
    if name in _STATEMENTS:
        return Traced(_STATEMENTS[name])
    if name in _WAITS:
        return Traced("")
    return Traced("", always=True) if name in _ONE_SIDED or name.startswith(_ONLY_TIME) else None


_REDUCED = "seatrial_bytes(N(count), datatype)"
_SEND_BLOCK = "seatrial_is_in_place(sendbuf) ? seatrial_bytes({}, recvtype) : seatrial_bytes(N(sendcount), sendtype)"
_RECEIVE_BLOCK = "seatrial_is_in_place(recvbuf) ? seatrial_bytes({}, sendtype) : seatrial_bytes(N(recvcount), recvtype)"
_OWN = "seatrial_element({}, seatrial_rank_of(comm), W)"
_NO_ROOT = "(word)-1"

_BLOCKS = {
    **dict.fromkeys(("Barrier", "Alltoallv", "Alltoallw", "Reduce_scatter"), (_NO_ROOT, "0")),
    **dict.fromkeys(("Bcast", "Reduce"), ("root", _REDUCED)),
    **dict.fromkeys(("Allreduce", "Scan", "Exscan"), (_NO_ROOT, _REDUCED)),
    "Gather": ("root", _SEND_BLOCK.format("N(recvcount)")),
    "Gatherv": ("root", _SEND_BLOCK.format(_OWN.format("recvcounts"))),
    "Scatter": ("root", _RECEIVE_BLOCK.format("N(sendcount)")),
    "Scatterv": ("root", _RECEIVE_BLOCK.format(_OWN.format("sendcounts"))),
    "Allgather": (_NO_ROOT, _SEND_BLOCK.format("N(recvcount)")),
    "Allgatherv": (_NO_ROOT, _SEND_BLOCK.format(_OWN.format("recvcounts"))),
    "Alltoall": (_NO_ROOT, _SEND_BLOCK.format("N(recvcount)")),
    "Reduce_scatter_block": (_NO_ROOT, "seatrial_bytes(N(recvcount), datatype)"),
}
"""The root, and the bytes of one rank's block."""


def _counts(is_received: bool, counts: str, types: str, has_types: bool = False) -> str:
    received, each = str(is_received).lower(), str(has_types).lower()
    return f"seatrial_trace_counts(comm, {received}, {counts}, W, {types}, {each});"


def _exchanged(types: str, has_types: bool) -> str:
    """In place, the call sends what it receives."""
    given = _counts(False, "sendcounts", f"send{types}", has_types)
    in_place = _counts(False, "recvcounts", f"recv{types}", has_types)
    received = _counts(True, "recvcounts", f"recv{types}", has_types)
    return f"if (seatrial_is_in_place(sendbuf)) {in_place} else {given} {received}"


_VECTORS = {
    "Gatherv": f"if (seatrial_is_root(comm, root)) {_counts(True, 'recvcounts', 'recvtype')}",
    "Scatterv": f"if (seatrial_is_root(comm, root)) {_counts(False, 'sendcounts', 'sendtype')}",
    "Allgatherv": _counts(True, "recvcounts", "recvtype"),
    "Alltoallv": _exchanged("type", has_types=False),
    "Alltoallw": _exchanged("types", has_types=True),
    "Reduce_scatter": _counts(True, "recvcounts", "datatype"),
}


def _collectives() -> dict[str, str]:
    found: dict[str, str] = {}
    for name, (root, block) in _BLOCKS.items():
        vectors = f" {_VECTORS[name]}" if name in _VECTORS else ""
        found[name] = f"seatrial_trace_collective(comm, {root}, {block});{vectors}"
        found[f"I{name.lower()}"] = f"seatrial_trace_post_collective(request, comm, {root}, {block});{vectors}"
        found[f"{name}_init"] = f"seatrial_trace_collective_template(request, comm, {root}, {block});{vectors}"
    return found


def _messages() -> dict[str, str]:
    modes = ("send", "bsend", "ssend", "rsend")
    post = "seatrial_trace_post_receive(request);"
    received = "seatrial_trace_received(comm, status);"
    sent_too = "seatrial_trace_sent(comm, dest, sendtag, bytes);"
    send_template = "seatrial_trace_send_template(request, comm, dest, tag, {});"
    receive_template = "seatrial_trace_receive_template(request, comm, source, tag, {});"
    partitions = "seatrial_bytes(seatrial_narrow(partitions) * seatrial_wide(count), datatype)"
    return {
        **{mode.capitalize(): "seatrial_trace_sent(comm, dest, tag, bytes);" for mode in modes},
        **{f"I{mode}": "seatrial_trace_post_send(request, comm, dest, tag, bytes);" for mode in modes},
        **{f"{mode.capitalize()}_init": send_template.format(_REDUCED) for mode in modes},
        "Psend_init": send_template.format(partitions),
        "Recv": received,
        "Irecv": post,
        "Imrecv": post,
        "Recv_init": receive_template.format(0),
        "Precv_init": receive_template.format(partitions),
        **dict.fromkeys(("Sendrecv", "Sendrecv_replace"), f"{sent_too} {received}"),
        **dict.fromkeys(("Isendrecv", "Isendrecv_replace"), f"{sent_too} {post}"),
    }


def _parent(name: str) -> str:
    return "comm_old" if name == "Cart_create" or "raph_create" in name else "comm"


_STATEMENTS = {
    **_collectives(),
    **_messages(),
    **{name: f"seatrial_trace_creation({_parent(name)}, {made});" for name, made in _MADE_BY_ALL.items()},
}
