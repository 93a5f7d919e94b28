"""What people see of Mission Control: views that prepare plain values, and templates that write them as HTML.

rendering            a request to an answer with its headers; the templates' environment, which escapes every value
sessions … health    one module per page: sessions, session, event, waterfall, feed, health, fleet, shares,
                     audit
export               a session as a file
timeline/            a run of events told as entries
formats, figures, agents    values as a person reads them
templates/, static/  one template per page; text.html, figures.html, timeline.html and agents.html are what they share
"""
