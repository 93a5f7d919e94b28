"""Every setting: its type, default, meaning and checks. Start with `settings`.

settings        the structs of all settings, with the meaning of each in their docstrings
fields          what the structs say about each setting
load            reads the layers (`given`), checks them and returns the settings with their origins
check           checks of each setting, and of a sink as a whole
source, url     addresses of sources and of sinks
proxy           which proxy the requests to a sink go through
paths, token    paths in settings; tokens and headers from files
show            the settings as rows of text, without secrets; drift: what may be compared with other exporters
example, schema the annotated example file and the JSON Schema, which are generated
errors          the error of this package
"""
