"""Measures the program beside syslog-ng and its own targets; it never judges a build (`make bench`)."""
