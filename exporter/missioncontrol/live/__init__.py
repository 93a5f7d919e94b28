"""What is true now and in no file: live events, and who is waited for.

subscriptions   fan-out to subscribers, each with a bounded queue
waiting         which sessions wait for a person, and the text of what is asked
notes           what receivers of one store tell each other
feed            notifications, warnings, errors and waits across all sessions
"""
