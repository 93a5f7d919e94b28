"""A run of events told as entries of a timeline.

windows         what pages read of the store: windows, scopes, places
teller          events to entries; entry is one of them, tools and notes make the words of calls and of what happened
calls, days     ends of calls behind a window, and headings of days; stops are errors and notifications to jump to
pieces          a whole session piece by piece, for exports
"""
