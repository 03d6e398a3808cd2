"""Live discovery from sysfs and procfs alone: each file here reads one corner of them below a `FileTree`."""
