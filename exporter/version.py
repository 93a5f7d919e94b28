"""The version of the program, readable without importing anything."""

VERSION = "0.1.0"
