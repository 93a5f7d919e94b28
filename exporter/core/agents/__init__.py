"""Which agent an event belongs to.

registry        sessions and their sub-agents; a claim is what one event says of its agent, `attribute` names the owner
"""
