"""Live discovery from sysfs and procfs only: each module reads one part of them below a `FileTree`."""
