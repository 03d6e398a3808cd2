"""C statements with which a wrapper counts the bytes and messages of an MPI call, besides counting and timing it.

`before` the call, they read handles that the call changes, and supply a status if the program ignores it. `after` a
successful call, they set `bytes` to what the rank passed to be sent, or to what arrived, and count messages by peer;
`size` is set where a call moves data that the rank did not pass. If the call `failed`, they count what completed
nevertheless. Arguments have the names of the standard. N(x) is a number of
the function's type (int, or MPI_Count in a `_c` function), W the width in bytes of the elements of its count arrays.
"""

from __future__ import annotations

from seatrial.model.frozen import Frozen


class Traffic(Frozen):
    """Statements around a call."""

    before: str = ""
    after: str = ""
    failed: str = ""

    @property
    def counts_peers(self) -> bool:
        """Whether messages are counted by peer."""
        return "seatrial_sent(" in self.after or "seatrial_received(" in self.after

    @property
    def has_size(self) -> bool:
        """Whether `size`, and not `bytes`, is the size of the call."""
        return self.after.startswith("size = ")

    @property
    def completes_several(self) -> bool:
        """Whether it may complete several requests: then its size is that of one message."""
        return "seatrial_wait_many(" in self.before


def is_collective(name: str) -> bool:
    """Whether a function is a collective that moves data or a barrier, blocking or not."""
    bare = name.removeprefix("MPI_").removesuffix("_c").capitalize()
    return bare in _COLLECTIVE or bare.removeprefix("I").capitalize() in _COLLECTIVE


def is_blocking_collective(base: str) -> bool:
    """Whether a function is a blocking collective of all ranks, so that a barrier may be inserted before it."""
    name = base.removeprefix("MPI_")
    return name in _COLLECTIVE and not name.startswith("Neighbor_")


def traffic_of(base: str) -> Traffic:
    """The statements of a function by its name without `_c`; none if it neither moves data nor completes requests."""
    return _TRAFFIC.get(base.removeprefix("MPI_"), Traffic())


_OWN = "struct seatrial_status own; "
_OWN_STATUS = _OWN + "status = seatrial_status_or_own(status, &own);"


def _gathered(in_place: str, else_: str = "seatrial_bytes(N(sendcount), sendtype)") -> str:
    return f"seatrial_is_in_place(sendbuf) ? seatrial_bytes({in_place}, recvtype) : {else_}"


_REDUCED = "seatrial_bytes(N(count), datatype)"
_OWN_COUNT = "seatrial_element(recvcounts, seatrial_rank_of(comm), W)"
_ALL_SENT = "seatrial_sum(sendcounts, W, seatrial_peers_of(comm))"
_ALL_READ = "seatrial_sum(recvcounts, W, seatrial_peers_of(comm))"

_COLLECTIVE = {
    "Barrier": "0",
    **dict.fromkeys(("Allreduce", "Scan", "Exscan"), _REDUCED),
    "Reduce": f"seatrial_sends_to_root(root) ? {_REDUCED} : 0",
    "Bcast": f"seatrial_is_root(comm, root) ? {_REDUCED} : 0",
    "Gather": f"!seatrial_sends_to_root(root) ? 0 : {_gathered('N(recvcount)')}",
    "Gatherv": f"!seatrial_sends_to_root(root) ? 0 : {_gathered(_OWN_COUNT)}",
    "Scatter": "seatrial_is_root(comm, root) ? seatrial_bytes(N(sendcount) * seatrial_peers_of(comm), sendtype) : 0",
    "Scatterv": f"seatrial_is_root(comm, root) ? seatrial_bytes({_ALL_SENT}, sendtype) : 0",
    "Allgather": _gathered("N(recvcount)"),
    "Allgatherv": _gathered(_OWN_COUNT),
    "Alltoall": _gathered(
        "N(recvcount) * seatrial_peers_of(comm)", "seatrial_bytes(N(sendcount) * seatrial_peers_of(comm), sendtype)"
    ),
    "Alltoallv": _gathered(_ALL_READ, f"seatrial_bytes({_ALL_SENT}, sendtype)"),
    "Alltoallw": "seatrial_is_in_place(sendbuf)"
    " ? seatrial_sum_of_types(recvcounts, W, recvtypes, seatrial_peers_of(comm))"
    " : seatrial_sum_of_types(sendcounts, W, sendtypes, seatrial_peers_of(comm))",
    "Reduce_scatter": "seatrial_bytes(seatrial_sum(recvcounts, W, seatrial_size_of(comm)), datatype)",
    "Reduce_scatter_block": "seatrial_bytes(N(recvcount) * seatrial_size_of(comm), datatype)",
    **dict.fromkeys(("Neighbor_allgather", "Neighbor_allgatherv"), "seatrial_bytes(N(sendcount), sendtype)"),
    "Neighbor_alltoall": "seatrial_bytes(N(sendcount) * seatrial_neighbours_of(comm), sendtype)",
    "Neighbor_alltoallv": "seatrial_bytes(seatrial_sum(sendcounts, W, seatrial_neighbours_of(comm)), sendtype)",
    "Neighbor_alltoallw": "seatrial_sum_of_types(sendcounts, W, sendtypes, seatrial_neighbours_of(comm))",
}
"""The bytes of the rank's send buffer, for blocking, nonblocking and persistent collectives."""

_FROM_ROOT = {
    "Bcast": f"size = {_REDUCED}; bytes = seatrial_is_root(comm, root) ? size : 0;",
    **{
        name: f"size = bytes = {_COLLECTIVE[name]}; if (!seatrial_is_root(comm, root)) size = {{}};".format(
            "seatrial_bytes(N(recvcount), recvtype)"
        )
        for name in ("Scatter", "Scatterv")
    },
}
"""Blocking collectives in which only the root sends: the others have a size, too."""


def _collectives() -> dict[str, Traffic]:
    found: dict[str, Traffic] = {}
    for name, amount in _COLLECTIVE.items():
        found[f"I{name.lower()}"] = Traffic(after=f"bytes = {amount};")
        found[name] = Traffic(after=_FROM_ROOT.get(name, f"bytes = {amount};"))
        keep = f"seatrial_track_start(request, SEATRIAL_PERSISTENT_COLLECTIVE, comm, (word)-1, {amount});"
        found[f"{name}_init"] = Traffic(after=keep)
    return found


_SENT = Traffic(after="bytes = seatrial_sent(dest, N(count), datatype);")
_SENT_BOTH = "bytes = seatrial_sent(dest, N(sendcount), sendtype);"
_SENT_REPLACED = "bytes = seatrial_sent(dest, N(count), datatype);"
_TAKE = "struct seatrial_communicator* const matched = seatrial_take_matched(message);"
_KEEP = "seatrial_keep_matched(matched, message);"
_RECEIVE = "seatrial_track_receive(request, SEATRIAL_{}, comm, source, {});"


def _point_to_point() -> dict[str, Traffic]:
    modes = ("send", "bsend", "ssend", "rsend")
    keep_send = (
        "seatrial_track_start(request, SEATRIAL_PERSISTENT_SEND, comm, dest, seatrial_bytes({}, datatype)); "
        "seatrial_note_gaps(request, datatype);"
    )
    started = _RECEIVE.format("RECEIVE", 0)
    both = "seatrial_track_receive_of_both(request, comm, source);"
    partitions = "seatrial_narrow(partitions) * seatrial_wide(count)"
    return {
        **{mode.capitalize(): _SENT for mode in modes},
        **{f"I{mode}": _SENT for mode in modes},
        **{f"{mode.capitalize()}_init": Traffic(after=keep_send.format("N(count)")) for mode in modes},
        "Psend_init": Traffic(after=keep_send.format(partitions)),
        "Recv": Traffic(_OWN_STATUS, "bytes = seatrial_received(status);"),
        "Irecv": Traffic(after=started),
        "Recv_init": Traffic(after=_RECEIVE.format("PERSISTENT_RECEIVE", 0)),
        "Precv_init": Traffic(after=_RECEIVE.format("PARTITIONED_RECEIVE", f"seatrial_bytes({partitions}, datatype)")),
        "Sendrecv": Traffic(_OWN_STATUS, f"{_SENT_BOTH} seatrial_received(status);"),
        "Sendrecv_replace": Traffic(_OWN_STATUS, f"{_SENT_REPLACED} seatrial_received(status);"),
        "Isendrecv": Traffic(after=f"{_SENT_BOTH} {both}"),
        "Isendrecv_replace": Traffic(after=f"{_SENT_REPLACED} {both}"),
        "Mprobe": Traffic(after="seatrial_track_matched(message, comm);"),
        "Improbe": Traffic(after="if (seatrial_int_at(flag)) seatrial_track_matched(message, comm);"),
        "Mrecv": Traffic(f"{_OWN_STATUS} {_TAKE}", "bytes = seatrial_received_matched(matched, status);", _KEEP),
        "Imrecv": Traffic(_TAKE, "seatrial_start_matched(matched, request);", _KEEP),
    }


_WAITING = _OWN + "struct seatrial_waiting waiting; "
_ONE = _WAITING + "seatrial_wait_one(&waiting, request, status, &own); status = waiting.statuses;"
_ANY = (
    _WAITING + "seatrial_wait_any(&waiting, seatrial_narrow(count), array_of_requests, status, &own); "
    "status = waiting.statuses;"
)
_MANY = (
    "struct seatrial_waiting waiting; seatrial_wait_many(&waiting, seatrial_narrow({}), array_of_requests, "
    "array_of_statuses); array_of_statuses = waiting.statuses;"
)
_IF_SO = "if (seatrial_int_at(flag)) "
_ONE_DONE = "bytes = seatrial_completed(&waiting, 0, status);"
_ANY_DONE = "bytes = seatrial_completed(&waiting, seatrial_int_at(index), status);"
_ALL_DONE = "bytes = seatrial_completed_all(&waiting);"
_FAILED = "bytes = seatrial_failed(&waiting, returned, {}, {});"
_ONE_FAILED = _FAILED.format("request", "false")
_ANY_FAILED = _FAILED.format("array_of_requests", "false")
_ALL_FAILED = _FAILED.format("array_of_requests", "true")
_SOME_DONE = "bytes = seatrial_completed_some(&waiting, outcount, array_of_indices);"
_SOME_FAILED = "bytes = seatrial_some_failed(&waiting, returned, outcount, array_of_indices, array_of_requests);"
_SOME = Traffic(_MANY.format("incount"), _SOME_DONE, _SOME_FAILED)

_REQUESTS = {
    "Wait": Traffic(_ONE, _ONE_DONE, _ONE_FAILED),
    "Test": Traffic(_ONE, _IF_SO + _ONE_DONE, _ONE_FAILED),
    "Waitany": Traffic(_ANY, _ANY_DONE, _ANY_FAILED),
    "Testany": Traffic(_ANY, _IF_SO + _ANY_DONE, _ANY_FAILED),
    "Waitall": Traffic(_MANY.format("count"), _ALL_DONE, _ALL_FAILED),
    "Testall": Traffic(_MANY.format("count"), _IF_SO + _ALL_DONE, _ALL_FAILED),
    "Waitsome": _SOME,
    "Testsome": _SOME,
    "Start": Traffic(after="bytes = seatrial_started(request);"),
    "Startall": Traffic(after="bytes = seatrial_started_all(seatrial_narrow(count), array_of_requests);"),
    "Request_free": Traffic("seatrial_drop_request(request);"),
    "Cancel": Traffic("seatrial_cancel_request(request);"),
}


_TO_RANK = "if ((int)target_rank != seatrial_mpi.proc_null) "
_TO_RANK_WITH_OP = "if ((int)target_rank != seatrial_mpi.proc_null && seatrial_handle(op) != seatrial_mpi.no_op) "
_ORIGIN = "bytes = seatrial_bytes(N(origin_count), origin_datatype);"
_ELEMENT = "bytes = seatrial_bytes(1, datatype);"
_ONE_SIDED = {
    **dict.fromkeys(("Put", "Rput", "Get", "Rget", "Accumulate", "Raccumulate"), Traffic(after=_TO_RANK + _ORIGIN)),
    **dict.fromkeys(("Get_accumulate", "Rget_accumulate"), Traffic(after=_TO_RANK_WITH_OP + _ORIGIN)),
    "Fetch_and_op": Traffic(after=_TO_RANK_WITH_OP + _ELEMENT),
    "Compare_and_swap": Traffic(after=_TO_RANK + _ELEMENT),
}
"""The origin's buffer, for either direction (none with MPI_NO_OP); the message matrix excludes one-sided calls."""


def _files() -> dict[str, Traffic]:
    wrote = Traffic(after=f"bytes = {_REDUCED};")
    read = Traffic(_OWN_STATUS, "bytes = seatrial_read_bytes(status);")
    keep = Traffic(after="seatrial_track_read(request);")
    places = ("", "_all", "_at", "_at_all", "_shared")
    split = ("_all", "_at_all", "_ordered")
    return {
        **{f"File_write{place}": wrote for place in (*places, "_ordered")},
        **{f"File_iwrite{place}": wrote for place in places},
        **{f"File_write{place}_begin": wrote for place in split},
        **{f"File_read{place}": read for place in (*places, "_ordered")},
        **{f"File_iread{place}": keep for place in places},
        **{f"File_read{place}_end": read for place in split},
    }


_HANDLES_AND_LIFETIME = {
    **dict.fromkeys(("Comm_free", "Comm_disconnect"), Traffic("seatrial_forget_communicator(comm);")),
    "Type_free": Traffic("seatrial_forget_datatypes();"),
    "Op_create": Traffic("user_fn = seatrial_timed_operation(user_fn);", "seatrial_note_operation(user_fn);"),
    "Finalize": Traffic("seatrial_closing();", "seatrial_closed();"),
    "Session_finalize": Traffic(
        "seatrial_closing_session(seatrial_handle_before(session));", "seatrial_closed_session();"
    ),
    "Abort": Traffic("seatrial_aborting();"),
}

_TRAFFIC: dict[str, Traffic] = (
    _collectives() | _point_to_point() | _REQUESTS | _ONE_SIDED | _files() | _HANDLES_AND_LIFETIME
)
