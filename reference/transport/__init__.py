"""Transport: features from one process to another, bit for bit, and the messages that name them."""
