"""The exporter as a service of this machine: what is written for its manager, and what the manager is asked.

`plan.py` says which files a manager needs (`systemd.py`, `launchd.py`, `windows.py` write their text), `variables.py`
which variables of the shell a service does not have, `manager.py` writes the files and runs the manager's commands.
Only `manager.py` does input and output.
"""
