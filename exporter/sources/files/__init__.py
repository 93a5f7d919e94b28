"""Session files of the CLI: finds, follows and reads them.

source          every session directory below `session-state`; session_file is one file and its readers
watch           the best watcher of this machine: inotify (Linux), native_watch (macOS, Windows), or polling
workspace, cli_process   the other files of a session: workspace.yaml, lock files and the processes that hold them
"""
