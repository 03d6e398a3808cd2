"""Discovery of a machine: readers (bytes -> facts), the graph of its devices, and facts about its processors.

`live.discover_live` is the entry point. Each source produces a `Survey`; `assemble` joins surveys into one `Machine`;
`processors`, `memory_population` and `limits` derive further facts.
"""
