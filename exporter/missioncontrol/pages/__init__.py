"""What people see of Mission Control: views that prepare plain values, and templates that write them as HTML.

page, rendering      a request to an answer with its headers; the templates' environment, which escapes every value
sessions … forget    one module per page or address: sessions, session, event, waterfall, feed, health, forget
export, markdown     a session as a file
timeline/            a run of events told as entries
formats, figures, rich_text, agents, found    values as a person reads them
templates/, static/  one template per page; text.html, figures.html, timeline.html and agents.html are what they share
"""
