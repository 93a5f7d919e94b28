"""Dashboards, alert rules and the files of the demonstration stack: made by code, asking for what exists."""
