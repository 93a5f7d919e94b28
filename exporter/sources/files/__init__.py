"""Session files of the CLI: found, followed, read.

source          every session directory below `session-state`; session_file is one file and its reader
watch           the best watcher of this machine: inotify (Linux), native_watch (macOS, Windows), polling (the rest)
workspace, cli_process, history   what stands beside the events: workspace.yaml, lock holders, envelopes of old files
"""
