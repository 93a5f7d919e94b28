"""What must be remembered: marks, delivered ids, quarantine, and who holds the state directory."""
