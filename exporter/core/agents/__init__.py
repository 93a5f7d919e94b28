"""Which agent an event belongs to.

registry        sessions and their sub-agents; `attribute` names the owner of an event
claims          what one event says about its agent, before anybody believes it
tools           which tools a sub-agent may call
"""
