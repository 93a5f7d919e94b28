"""How requests of a sink travel, and what it concludes from their answers."""
