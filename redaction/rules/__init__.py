"""What is a secret, as rules.

rule            what a rule is: gates, a function that extracts secrets, an example and a counter-example
rule_set        all rules: built in, of detect-secrets and of users; `trial` tries those of users
formats         token formats as rows of `tables/*.toml`, made into rules
shape           the pattern language of formats; `examples` expands their templates
token_reader    reads a token at a place; `checks` tests its structure
named           formats that count only after one of their names
detectors       rules from the detectors of detect-secrets
context         rules that tell a secret by what is around it, one module for each family
"""
