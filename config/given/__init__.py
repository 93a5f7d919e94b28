"""Where settings come from: the file, environment variables, and variables of other programs.

layer           what one place gives, by path; file, environment and fallbacks are such places
toml, text      how values are written in each
"""
