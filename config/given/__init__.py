"""The places that settings come from, each read into a layer: settings by path.

layer           a layer, and one given value with its place
file            the settings file; `toml` finds the lines of its keys
environment     variables of ours, and those of the CLI and of OpenTelemetry
"""
