"""A run of events told as entries of a timeline.

windows       what pages read of the store: windows, scopes, places, and the ends of calls behind a window
teller        events to entries; entry is one of them, tools and notes make the words of calls and of what happened
axis          where entries stand in time: headings of days, bars, colours of agents
stops         errors and notifications to jump to
"""
