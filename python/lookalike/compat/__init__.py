"""Drop-in replacements for other packages, so users can switch by changing one import."""
