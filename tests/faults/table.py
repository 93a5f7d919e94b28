"""Every fault that the program promises to survive: its number, what is expected, where it is injected, its tests.

The numbers stay: a row that is given up keeps its number with a note. A test named without its parameters stands
for all of them. Where a test of `test_beside_peers.py` is named, the peers are in the same row.
"""

from dataclasses import dataclass
from typing import Final

PEERS: Final = "tests/faults/test_beside_peers.py"
"""Where the tests are that run with each shipper."""
ANSWERS: Final = "tests/faults/test_answers.py"
CLOCKS: Final = "tests/faults/test_clocks.py"
SIGNALS: Final = "tests/faults/test_signals.py"
MACHINE: Final = "tests/faults/test_machine.py"
PROGRAM: Final = "tests/program/test_"
DAEMON: Final = "tests/daemon/test_"
HOSTILE: Final = "tests/sinks/test_hostile_receiver.py"
HTTP: Final = "tests/missioncontrol/http/test_"


@dataclass(frozen=True, slots=True)
class Row:
    """One promise; `edge` is a key of `EDGES` of the drift test: where the fault comes in."""

    number: int
    fault: str
    expected: str
    edge: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"F{self.number}"


def _row(number: int, fault: str, expected: str, edge: str, *tests: str) -> Row:
    return Row(number, fault, expected, edge, tests)


TABLE: Final = (
    # ── the process ───────────────────────────────────────────────────────────────────────────────────────────────
    _row(
        1, "kill -9 between the answer 200 and the mark", "0 lost, at most one batch sent twice", "signal",
        f"{ANSWERS}::test_killed_between_the_answer_and_the_mark",
    ),
    _row(
        2, "kill -9 while a mark is written", "the old mark or the new one, never a part of it", "signal",
        "tests/state/test_marks.py::test_a_mark_and_its_ids_are_one_thing_under_kill_9",
        f"{DAEMON}torn_marks.py::test_a_kill_after_every_single_answer_repeats_at_most_that_batch",
    ),
    _row(
        3, "kill -9 at 200 random instants while 60,000 events are written",
        "every event stored once and in order; a kill repeats at most one batch", "signal",
        f"{PROGRAM}kill.py::test_200_kills_while_60000_events_are_written_store_each_once",
        f"{PEERS}::test_killed_again_and_again_while_the_session_is_written",
    ),
    _row(
        4, "SIGTERM in the middle of a batch", "0 lost, 0 twice, ended within 2 s", "signal",
        f"{PROGRAM}signals.py::test_a_stop_while_an_answer_is_on_its_way_repeats_nothing",
        f"{PEERS}::test_stopped_while_an_answer_is_on_its_way",
    ),
    _row(
        5, "SIGTERM while the endpoint is down", "0 lost, ended within 2 s", "signal",
        f"{PROGRAM}signals.py::test_a_stop_while_the_endpoint_fails_loses_nothing",
        f"{PEERS}::test_stopped_while_the_endpoint_answers_503",
    ),
    _row(
        6, "a second SIGTERM", "ends at once, marks intact", "signal",
        f"{PROGRAM}signals.py::test_a_second_stop_ends_at_once_with_the_marks_intact",
    ),
    # ── the endpoint ──────────────────────────────────────────────────────────────────────────────────────────────
    _row(
        7, "endpoint away for an hour", "asked about once a minute, goes on within 60 s, 0 lost", "clock",
        f"{CLOCKS}::test_endpoint_away_for_an_hour", f"{PEERS}::test_endpoint_down_and_back",
    ),
    _row(8, "503 five times, then good", "done within 6 s, 0 lost", "socket", f"{PEERS}::test_five_times_503"),
    _row(
        9, "429 with Retry-After: 3", "asked again after 3 to 4 s", "socket",
        f"{PEERS}::test_429_with_retry_after_3",
    ),
    _row(
        10, "Retry-After as a date, in the past, 0, negative, a fraction, no time at all",
        "a date is waited for; nothing makes it ask more often than its own growing wait", "socket",
        f"{ANSWERS}::test_no_retry_after_shortens_a_wait",
        f"{DAEMON}later.py::test_every_form_of_retry_after_is_read_and_clamped",
    ),
    _row(
        11, "408, 425, 429, 500, 502, 503, 504", "repeated, 0 lost, 0 twice", "socket",
        f"{ANSWERS}::test_each_passing_trouble_is_waited_out",
    ),
    _row(
        12, "501 and 505", "asked about once a minute, an alarm, nothing given up", "clock",
        f"{CLOCKS}::test_an_endpoint_that_says_never_is_asked_seldom_and_nothing_is_given_up[501]",
        f"{CLOCKS}::test_an_endpoint_that_says_never_is_asked_seldom_and_nothing_is_given_up[505]",
    ),
    _row(
        13, "400 for one poisonous event", "that one in quarantine, the others delivered, about 2·log2(n) requests",
        "socket", f"{PEERS}::test_400_for_one_event",
        f"{DAEMON}refused.py::test_one_poisonous_event_among_500_is_found_by_halving",
    ),
    _row(14, "400 once, from a proxy", "0 lost", "socket", f"{PEERS}::test_400_once"),
    _row(
        15, "401 until the token is right", "pauses, reads the token again, goes on by itself, 0 lost", "socket",
        f"{PEERS}::test_401_until_the_token_is_renewed",
        f"{PROGRAM}exit_codes.py::test_a_token_that_expires_on_the_way_costs_no_event",
    ),
    _row(
        16, "404 and undeclared 410 for everything", "an alarm, the marks stay, goes on when it is over", "clock",
        f"{CLOCKS}::test_an_endpoint_that_says_never_is_asked_seldom_and_nothing_is_given_up[404]",
        f"{CLOCKS}::test_an_endpoint_that_says_never_is_asked_seldom_and_nothing_is_given_up[410]",
    ),
    _row(
        17, "409 from a receiver that is behind", "what it lacks is sent, nothing else", "socket",
        f"{DAEMON}session_gone.py::test_a_conflict_with_a_receiver_that_is_behind_sends_what_it_lacks",
    ),
    _row(
        18, "409 from a receiver that names nothing", "the session is sent again from its first event", "socket",
        f"{DAEMON}session_gone.py::test_a_conflict_at_the_floor_sends_the_session_from_its_first_event",
    ),
    _row(
        19, "413 above 200 kB", "smaller bodies, remembered; all delivered", "socket",
        f"{PEERS}::test_413_above_200_kb",
        f"{DAEMON}refused.py::test_a_limit_of_200_kb_is_learnt_and_everything_arrives",
    ),
    _row(
        20, "413 for a single event", "in quarantine after one try, the others delivered", "socket",
        f"{DAEMON}refused.py::test_an_event_that_is_too_large_by_itself_goes_to_quarantine_after_one_try",
    ),
    _row(
        21, "415 for zstd, then for gzip", "less compression each time, remembered", "namespace",
        f"{MACHINE}::test_compression_that_is_refused_is_given_up_and_stays_so",
    ),
    _row(
        22, "a redirect to another host", "not followed; the token goes nowhere", "socket",
        f"{DAEMON}refused.py::test_a_redirect_is_never_followed_and_the_token_stays_here",
    ),
    _row(
        23, "200 without a sound acknowledgement", "not taken for one; the receiver is asked what it has", "socket",
        f"{DAEMON}answer_lost.py::test_a_200_without_a_sound_acknowledgement_is_checked",
    ),
    _row(
        24, "200, and the events dropped", "found by count and digest, sent again", "socket",
        f"{DAEMON}answer_lost.py::test_a_batch_that_was_acknowledged_and_dropped_is_found_when_more_follows",
        f"{DAEMON}answer_lost.py::test_a_batch_that_was_acknowledged_and_dropped_is_found_after_a_restart",
    ),
    _row(
        25, "the answer is lost after the receiver stored", "sent again, stored once", "socket",
        f"{PEERS}::test_answer_lost_after_the_receiver_stored",
        f"{DAEMON}answer_lost.py::test_an_acknowledgement_lost_after_the_receiver_stored_makes_no_duplicate",
    ),
    _row(
        26, "connection reset in the middle of a body", "sent again, 0 lost", "socket",
        f"{PEERS}::test_connection_reset_in_the_middle_of_a_body",
    ),
    _row(
        27, "no answer", "given up in time, repeated, one request at a time", "socket",
        f"{DAEMON}answer_lost.py::test_no_answer_is_given_up_in_time_and_the_same_is_sent_again_alone",
    ),
    _row(
        28, "a receiver that reads slowly, or not at all", "waited for with one body in memory; given up in time",
        "socket", f"{DAEMON}answer_lost.py::test_a_slow_reader_is_waited_for_and_little_is_held",
        f"{HOSTILE}::test_a_request_that_is_not_taken_ends_in_time",
    ),
    _row(
        29, "certificate expired; name does not resolve", "waited for, nothing given up", "clock",
        f"{CLOCKS}::test_a_certificate_that_expired_is_waited_for",
        f"{MACHINE}::test_a_name_that_does_not_resolve_is_looked_up_again",
    ),
    # ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────
    _row(
        30, "last line written in two halves, a restart between", "not sent before its newline", "files",
        f"{PEERS}::test_last_line_is_written_in_two_halves",
        f"{PROGRAM}odd_bytes.py::test_a_torn_line_is_held_over_a_restart",
    ),
    _row(
        31, "a line cut inside a character", "held until it is whole", "files",
        f"{PROGRAM}odd_bytes.py::test_a_torn_line_is_not_sent_before_it_is_whole",
    ),
    _row(
        32, "a line that is never finished", "reported, never sent, goes on if it is continued", "files",
        f"{PROGRAM}odd_bytes.py::test_a_line_that_is_never_finished_is_reported",
    ),
    _row(
        33, "truncated to shorter, then appended", "goes on from the last event that is left; the others are hidden",
        "files", f"{PEERS}::test_truncated_to_shorter_and_appended",
        f"{PROGRAM}files.py::test_a_file_truncated_to_shorter_goes_on_from_there",
    ),
    _row(
        34, "truncated and refilled longer", "not taken for the same file", "files",
        f"{PEERS}::test_truncated_and_refilled_longer",
        f"{PROGRAM}files.py::test_a_file_truncated_and_refilled_longer_is_not_taken_for_a_longer_one",
    ),
    _row(
        35, "copied and truncated, written on at once", "all that is written afterwards arrives", "files",
        f"{PEERS}::test_copied_and_truncated",
        f"{PROGRAM}files.py::test_a_copied_and_truncated_file_delivers_what_comes_after",
    ),
    _row(
        36, "rewritten with its first half kept (a rewind)", "0 twice; what is gone is hidden", "files",
        f"{PEERS}::test_rewritten_with_its_first_half_kept",
        f"{PROGRAM}files.py::test_a_rewind_hides_what_is_gone_and_sends_nothing_twice",
    ),
    _row(
        37, "another, longer file under the same inode while down", "taken for another one, 0 lost", "files",
        f"{PEERS}::test_another_longer_file_under_the_same_inode_while_down",
        f"{PROGRAM}files.py::test_another_file_under_the_same_inode_is_seen_after_a_restart",
    ),
    _row(
        38, "deleted while behind", "drained from the open file", "files",
        f"{PROGRAM}files.py::test_a_file_deleted_while_behind_is_drained_from_the_open_file",
    ),
    _row(
        39, "session directory moved away and back", "the same session, 0 twice", "files",
        f"{PEERS}::test_directory_moved_away_and_back",
        f"{PROGRAM}files.py::test_a_directory_that_grew_while_it_was_away_is_delivered",
    ),
    _row(
        40, "link loop, FIFO or directory named events.jsonl", "passed over with a word, others go on", "files",
        f"{PROGRAM}files.py::test_what_is_no_file_is_passed_over",
    ),
    _row(
        41, "a line of 3 MB; a line of 100 MB", "delivered; in quarantine with at most 150 MB of memory", "files",
        f"{PEERS}::test_event_of_three_megabytes",
        f"{PROGRAM}odd_bytes.py::test_a_line_over_the_limit_is_quarantined_in_bounded_memory",
    ),
    _row(
        42, "a page of NUL bytes in the middle", "in quarantine with its place, the rest delivered", "files",
        f"{PEERS}::test_page_of_nuls_in_the_middle",
        f"{PROGRAM}odd_bytes.py::test_a_broken_line_is_quarantined_with_reason_and_offset_and_the_rest_delivered",
    ),
    _row(
        43, "no JSON, no id, an id twice, a broken chain", "in quarantine or delivered once; the session goes on",
        "files", f"{PROGRAM}odd_bytes.py::test_a_repeated_id_and_a_broken_chain_stop_nothing",
        f"{PROGRAM}odd_bytes.py::test_an_event_torn_by_the_next_one_is_quarantined_alone",
    ),
    # ── state and machine ─────────────────────────────────────────────────────────────────────────────────────────
    _row(
        44, "disk full under the state directory", "alive, loud, waits; at most one batch twice after a kill", "disk",
        f"{PEERS}::test_disk_of_the_state_is_full",
        f"{PROGRAM}state_directory.py::test_a_full_disk_stops_the_marks_and_loses_nothing",
    ),
    _row(
        45, "marks zeroed, cut, garbage, of another version", "set aside, rebuilt by asking; alive, 0 lost", "files",
        f"{PEERS}::test_state_is_zeroed_while_down",
        f"{PROGRAM}marks.py::test_marks_damaged_while_down_are_rebuilt_by_asking",
        f"{PROGRAM}marks.py::test_marks_damaged_while_running_are_rebuilt_by_asking",
    ),
    _row(
        46, "state directory read-only or somebody else's", "exit 3 with its name, nothing sent", "files",
        f"{PROGRAM}marks.py::test_a_state_directory_that_cannot_be_used_is_refused",
        "tests/state/test_lock.py::test_a_directory_of_somebody_else_is_refused",
    ),
    _row(
        47, "two of it with one state directory", "the second ends with 7 within a second", "signal",
        f"{PEERS}::test_two_of_it_with_one_state_directory",
        f"{PROGRAM}daemons.py::test_a_second_run_ends_with_7_within_a_second",
    ),
    _row(
        48, "the clock jumps by a day, either way", "no wait changes, nothing expires", "clock",
        f"{CLOCKS}::test_a_wall_clock_that_jumps_by_a_day",
    ),
    _row(
        49, "inotify: no instance, few watches, a queue that overflows; 1,000 files",
        "one instance; polls what is not watched; looks at everything after an overflow", "limit",
        f"{MACHINE}::test_what_the_kernel_does_not_watch_is_looked_at",
        "tests/sources/files/test_inotify.py::test_an_overflow_is_reported_as_lost_and_watching_goes_on",
        f"{PEERS}::test_a_thousand_files",
    ),
    _row(
        50, "1,000 sessions with 256 descriptors", "all delivered, 0 twice", "limit",
        f"{PROGRAM}limits.py::test_1000_sessions_are_followed_with_256_descriptors",
    ),
    _row(
        51, "one session of 300 MB and 999 small ones at once", "the small ones do not wait for the huge one", "files",
        f"{PROGRAM}limits.py::test_small_sessions_are_complete_before_a_huge_one",
    ),
    _row(
        52, "backfill of a session that is being followed", "no gap, 0 twice", "files",
        f"{PROGRAM}daemons.py::test_backfill_of_a_session_that_is_being_followed_leaves_no_gap_and_repeats_nothing",
    ),
    _row(
        53, "a backlog of 1 GB under a memory limit", "at most 150 MB resident, 0 lost, 0 twice", "limit",
        f"{MACHINE}::test_a_gigabyte_with_little_memory",
    ),
    # ── answers that lie or never end ─────────────────────────────────────────────────────────────────────────────
    _row(
        54, "a portal answers 200 with a page", "no acceptance: pending in status, delivered afterwards", "socket",
        f"{ANSWERS}::test_the_page_of_a_portal_is_no_acceptance",
    ),
    _row(
        55, "many sessions wait for one endpoint", "one of them asks at a time", "socket",
        f"{ANSWERS}::test_no_retry_after_shortens_a_wait",
        f"{DAEMON}later.py::test_while_a_sink_fails_many_sessions_knock_one_at_a_time",
    ),
    _row(
        56, "one of several sinks is refused, away or in trouble, in run and in backfill",
        "the others get everything; the exit status is that of the worst", "socket",
        f"{DAEMON}company.py::test_the_good_sinks_get_everything_beside_a_bad_one",
        f"{DAEMON}company.py::test_the_command_ends_with_the_status_of_the_worst",
    ),
    _row(
        57, "verify of a receiver that cannot be asked", "unknown, exit 4, never equal", "socket",
        f"{DAEMON}verify.py::test_sinks_that_cannot_be_asked_end_verify_with_partial",
        f"{DAEMON}verify.py::test_of_a_receiver_at_the_floor_nobody_says_that_it_is_equal",
    ),
    _row(
        58, "410 that a receiver declared, and a command that names the session", "left alone, exit 4", "socket",
        f"{DAEMON}verify.py::test_a_run_that_names_a_session_that_was_deleted_there_ends_in_part",
    ),
    _row(
        59, "an answer without an end", "cut at its limit, memory bounded", "socket",
        f"{HOSTILE}::test_no_answer_takes_more_memory_than_allowed",
        f"{HOSTILE}::test_a_list_of_ids_above_its_limit_is_no_list",
    ),
    _row(
        60, "an answer that is a gzip bomb", "cut at its limit, memory bounded", "socket",
        f"{HOSTILE}::test_no_answer_takes_more_memory_than_allowed",
    ),
    _row(
        61, "an answer of one byte a second", "given up within timeout_seconds", "socket",
        f"{HOSTILE}::test_an_answer_that_drips_ends_in_time",
    ),
    _row(
        62, "any answer at all: status lines, headers, chunks, encodings, resets",
        "only an acceptance is taken for one; no request outlasts its time", "socket",
        f"{HOSTILE}::test_only_an_acceptance_is_taken_for_one",
    ),
    _row(
        63, "doctor against a server that answers 404 to everything", "the check fails", "socket",
        "tests/doctor/test_sinks.py::test_each_answer_of_a_mission_control_has_its_verdict",
    ),
    # ── state that is lost ────────────────────────────────────────────────────────────────────────────────────────
    _row(
        64, "the state directory vanishes while it runs", "said, 0 twice, a second run is refused", "files",
        f"{PROGRAM}state_directory.py::test_a_state_directory_that_vanishes_is_said_and_nothing_is_sent_twice",
    ),
    _row(
        65, "redaction.key zeroed or half written", "set aside, made anew, said; never a key of zeros", "files",
        f"{PROGRAM}state_directory.py"
        "::test_a_zeroed_key_of_the_markers_is_replaced_loudly_and_everything_is_delivered",
        "tests/state/test_redaction_key.py::test_a_damaged_one_is_set_aside_and_made_anew",
    ),
    _row(
        66, "marks restored from a backup", "what followed may be sent again, stored once", "files",
        f"{PROGRAM}state_directory.py::test_marks_restored_from_a_backup_repeat_nothing",
    ),
    # ── what is not theirs ────────────────────────────────────────────────────────────────────────────────────────
    _row(
        67, "a session of another token", "left alone with an alarm, others go on, exit 4", "socket",
        f"{PROGRAM}ownership.py::test_a_session_of_another_token_is_left_alone_and_others_go_on",
        f"{HTTP}access.py::test_a_foreign_session_is_unknown_to_questions_and_named_to_uploads",
    ),
    _row(
        68, "every route with every kind of token", "upload: own sessions; read: no change; admin: all", "socket",
        f"{HTTP}access.py::test_every_route_with_every_kind_of_token",
    ),
    _row(
        69, "another user listens at the place of the control socket", "not believed", "signal",
        f"{DAEMON}control_socket.py::test_another_user_who_listens_in_the_daemons_place_is_not_believed",
    ),
    _row(
        70, "another user opens connections without an end", "answers to the owner do not wait", "socket",
        f"{HTTP}server.py::test_many_connections_of_another_user_slow_nobody_down",
    ),
    _row(
        71, "a FIFO as token file", "ends at once with its name", "files",
        f"{PROGRAM}receiver.py::test_a_pipe_as_its_token_file_ends_at_once",
    ),
    _row(
        72, "an empty token file", "run says which; what sends nothing works", "files",
        f"{PROGRAM}exit_codes.py::test_an_empty_token_file_is_needed_by_nothing_that_sends_nothing",
    ),
    _row(
        73, "events.jsonl links out of its directory; a linked directory", "not followed; followed; both said", "files",
        f"{PROGRAM}files.py::test_a_linked_file_is_not_followed_and_a_linked_directory_is_and_both_are_said",
    ),
    _row(
        74, "64 and 48 descriptors, and none left", "all delivered, status answers, said once", "limit",
        f"{PROGRAM}limits.py::test_with_few_descriptors_everything_is_delivered_and_the_limit_is_said",
        f"{PROGRAM}limits.py::test_status_answers_when_no_descriptor_is_left",
    ),
    _row(
        75, "control characters in what a session says of itself", "escaped, in --json too", "files",
        "tests/cli/test_commands.py::test_no_session_can_steer_the_terminal_through_json",
    ),
    _row(
        76, "bad requests without an end", "logged once a minute and kind", "socket",
        f"{HTTP}server.py::test_bad_requests_are_logged_once_a_minute_and_kind",
    ),
    # ── found on the way ──────────────────────────────────────────────────────────────────────────────────────────
    _row(
        77, "kill -9 while the endpoint answers 503", "0 lost, 0 twice", "signal",
        f"{PEERS}::test_killed_while_the_endpoint_answers_503",
    ),
    _row(
        78, "the receiver is killed under load", "it keeps all that it acknowledged", "signal",
        "tests/missioncontrol/test_kill.py::test_killed_under_load_it_keeps_all_it_acknowledged",
    ),
    _row(
        79, "kill -9 again and again with an OTLP endpoint", "every record arrives", "signal",
        f"{PROGRAM}otlp.py::test_killed_again_and_again_every_record_arrives",
    ),
    # ── copies ────────────────────────────────────────────────────────────────────────────────────────────────────
    _row(
        80, "a store restored from a backup", "what it lacks is delivered again, of idle sessions too", "files",
        f"{PROGRAM}restored_store.py::test_the_next_run_fills_a_store_that_was_restored_from_a_backup",
        f"{PROGRAM}restored_store.py::test_a_running_exporter_fills_a_store_that_was_restored_from_a_backup",
    ),
    _row(
        81, "a state directory that was copied and is used twice", "neither hides what the other sent", "files",
        f"{PROGRAM}restored_store.py::test_neither_of_two_installations_with_one_state_directory_hides_the_others_events",
    ),
    # ── signals of an OTLP endpoint ───────────────────────────────────────────────────────────────────────────────
    _row(
        82, "OTLP: 404, 405, 415 or 501 for one signal that was never accepted (in place of F12, F16, F21)",
        "that signal is off with one notice, the others arrive, exit 0; asked again each day, 0 lost", "socket",
        f"{SIGNALS}::test_a_signal_that_is_not_taken_is_off_and_the_others_arrive",
        f"{SIGNALS}::test_a_signal_that_is_off_is_asked_again_once_a_day_and_goes_on_from_its_mark",
    ),
    _row(
        83, "OTLP: 404 for every signal", "an alarm with the URL, exit 6, the marks stay, 0 lost", "socket",
        f"{SIGNALS}::test_an_endpoint_that_takes_no_signal_is_an_alarm_and_gives_up_nothing",
    ),
    _row(
        84, "OTLP: 415 for gzip", "everything without compression, no signal is off", "socket",
        f"{SIGNALS}::test_an_endpoint_that_takes_no_gzip_gets_everything_without",
    ),
    _row(
        85, "OTLP: 503 for one signal; another sink away", "all of the others arrive in a backfill, then exit 6",
        "socket",
        f"{PROGRAM}otlp_signals.py::test_a_signal_that_waits_holds_no_other_back",
        f"{PROGRAM}otlp_signals.py::test_another_sink_that_is_away_holds_no_telemetry_back",
    ),
)  # fmt: skip
