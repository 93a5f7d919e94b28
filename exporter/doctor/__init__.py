"""What `exporter doctor` looks at: facts in, checks with a verdict and a remedy out; changes nothing."""
