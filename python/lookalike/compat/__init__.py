"""Modules that stand in for other packages, so that their users switch by one import."""
