"""The Agent Host Protocol for somebody who only watches: what is said, what it means, and which events that makes."""
