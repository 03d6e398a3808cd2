"""Guests (virtual machines) on this machine: brought up with QEMU from a topology, and commands in them."""
