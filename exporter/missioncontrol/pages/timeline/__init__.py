"""A run of events as entries of a timeline.

windows       what pages read of the store: windows, scopes, places, and the ends of calls behind a window
teller        events to entries, and the errors and notifications to jump to
entry         one entry, and where it stands in time: headings of days, bars
wording       the words of calls and of what happened; wording.toml has a row for each type of event
"""
