"""From records to what is published: figures, ceilings, findings. Nothing here changes a record."""
