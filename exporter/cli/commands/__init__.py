"""The commands: one file for each, or for each group whose commands belong together.

up, run, backfill, status, verify, doctor   what people type every day
sessions, quarantine, archive, config, tap, dashboards, completion, mission_control   groups and helpers

The commands below `exporter redact` have a package of their own.
"""
