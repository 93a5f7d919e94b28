"""What people see of Mission Control: events told as a story, and written as HTML in which nothing of theirs runs."""
