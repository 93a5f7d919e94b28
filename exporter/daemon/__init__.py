"""The running exporter, on one event loop: which sessions are followed, when it is done, what it answers.

daemon          sessions get lanes, sinks get turns; running and serving hold it together with its page and socket
backfill        history, in order; backfill_helpers are processes that take a share of it
verify, quarantine_replay, tail   what commands ask for, beside delivery
control_socket, control_requests  how commands reach a running daemon, and what it answers
status_report, offline_status, session_list, reports, read_rates   what people and receivers are told
remote_sources, journal_writer, journal_cleanup, live_relay        sessions without a file, and live events
"""
