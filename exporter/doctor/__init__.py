"""What `exporter doctor` looks at: facts in, checks with a verdict and a remedy out; changes nothing.

doctor, facts, check   all checks in order, and a report without event content; what they start from; one check
machine, state, sources   this machine; the state directory and its free space; the CLI's sessions and other sources
sinks                  where events go: reachable, authorised, private; the CLI's own telemetry
way                    how a sink is reached: proxy and certificates
"""
