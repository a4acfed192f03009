"""The independent validator: what a plan says is followed again, and must hold."""
