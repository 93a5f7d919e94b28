"""The parts of the program joined with the packages beside it."""
