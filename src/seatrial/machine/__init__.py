"""What a machine is: readers (text -> facts), the graph that they fill, and what is known of its processors.

`live.discover_live` is the recipe. Each source gives a `Survey`; `assemble` joins surveys into one `Machine`;
`processors`, `memory_population` and `limits` add what follows from it.
"""
