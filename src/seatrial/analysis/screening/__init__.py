"""Screens of clusters: the odd node, device, link or switch, and the facts on which nodes differ."""
