"""The commands: one file for each, or for each group whose commands belong together.

Those of `exporter redact` have a package of their own.
"""
