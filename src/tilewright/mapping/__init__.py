"""Mappings of layers onto arrays: what mappings there are, their cost by the million, and the best of all of them."""
