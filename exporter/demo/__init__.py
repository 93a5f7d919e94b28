"""A made-up session, and its replay as a live one."""
