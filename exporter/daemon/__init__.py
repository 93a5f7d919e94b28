"""The running exporter, on one event loop: which sessions are followed, when it is done, what it answers.

daemon          sessions get lanes, sinks get turns; running holds it together with its page and socket
backfill        history, in order, by this process and by helpers; verify and tail are beside delivery too
control_socket, control_requests   how commands reach a running daemon, and what it answers
status_report, offline_status      the state of sessions, sources and sinks, and the reports of it to receivers
sealed_settings what a receiver is told of the settings
remote_sources, live_relay         sessions without a file, and ephemeral events
serving         the process: its signals, no core dumps, the browser
"""
