"""A directory for PYTHONPATH: whatever starts with it has a fixed time of day and ids that do not depend on chance."""
