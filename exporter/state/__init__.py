"""What the exporter stores: marks, delivered ids, quarantine, and who holds the state directory.

marks           what every sink has of every session, and counts of metrics that are not sent yet
quarantine      events that could not be sent, with the reason
lock, redaction_key, redaction_counts, database   the directory's owner, its key, counts of redactions, opening a file
"""
