"""Commands that print a secret, told by what starts a tool call; their whole answer is masked.

shell       a command line taken apart: its simple commands, and where the output of each goes
powershell  the same for what PowerShell reads
table       the commands that print secrets, as rows of `commands.toml` and of users' rule files
answers     the strings of an event that are a tool's answer
"""
