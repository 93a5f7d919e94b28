"""Real backends: how they are had, how they are started with the settings of `deploy/`, and what they answer."""
