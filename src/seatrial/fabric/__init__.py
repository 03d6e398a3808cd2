"""Discovery of a fabric: readers of what its tools print, and the graph of switches, nodes and links.

`dumps.read_fabric` is the entry point. Readers produce `parts.FabricDump`; `assemble` checks and joins them into a
`Fabric`, with the levels (`levels`), the rates that links are capable of (`capability`), and oversubscription.
"""
