"""Tilings: how layers, alone and fused, can be cut so that their tiles fit."""
