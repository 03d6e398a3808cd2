"""Statistics as pure functions: intervals and stopping. docs/methodology.md gives the reasons."""
