"""What a log says, without a server: decision logs as arrays, and off-policy estimates from them."""
