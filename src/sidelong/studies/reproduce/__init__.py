"""Whether the reference studies give what is written beside them."""
