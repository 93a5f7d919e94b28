"""What the exporter remembers: marks, delivered ids, quarantine, and who holds the state directory.

marks           what every sink has of every session; pending_metrics are counts that are not sent yet
quarantine      events that could not be sent, with the reason
lock, redaction_key, redaction_counts, database   the directory's owner, its key, what was masked, opening a file
"""
