"""Files for sessions that have none, in the form that the file source follows.

journals        the journals of one state directory: append, reclaim, delete
file            the file of one journal: lines at its end, a hole at its front
"""
