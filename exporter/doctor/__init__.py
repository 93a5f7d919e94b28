"""What `exporter doctor` looks at: facts in, checks with a verdict and a remedy out; changes nothing.

doctor, facts, check   all checks in order; what they are told; one check with its verdict
machine, state, sessions, sources   this machine, the state directory, followed sessions, other sources
sinks, archive, telemetry           where events go: reachable, authorised, private; the CLI's own telemetry
bundle          a report for a bug report, without event content
"""
