"""From what was asked for to the points that will be measured."""
