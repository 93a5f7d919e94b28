"""What is a secret, as rules.

rule, rule_set  one rule; all rules. trial tests the rules of users
built_in, formats, shape, token_reader, steps, checks, examples   token formats as rows of `tables/*.toml`
named, detectors   formats that need their name; the patterns of detect-secrets
context         rules that tell a secret by what stands around it, a module per family
"""
