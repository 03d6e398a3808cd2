"""What starts applications: inputs of the user or made here, copies that share a node, interpreters."""
