"""Every setting: its type, default, meaning and checks."""
