"""The completion functions for bash and zsh, with @PLACES@ for what comes from the parsers."""

from typing import Final

BASH: Final = """\
# bash completion for exporter; load it with: source <(exporter completion bash)
_exporter() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"
  local first="" command="" words="@WORDS@" flags="" word i skip=""
  COMPREPLY=()
  case "$prev" in
    @WITH_FILE@) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    --session) COMPREPLY=($(compgen -W "$(@SESSION_IDS@)" -- "$cur")); return ;;
@CHOICES@
    @WITH_VALUE@) return ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${COMP_WORDS[i]}"
    if [[ -n "$skip" ]]; then skip=""; continue; fi
    case "$word" in
      @GLOBAL_WITH_VALUE@) skip=1; continue ;;
      -*) continue ;;
    esac
    if [[ -z "$first" ]]; then first="$word"; command="$word"
    elif [[ "$command" == "$first" ]]; then command="$first $word"; fi
  done
  case "$first" in
    "") flags="--help --version" ;;
@GROUPS@
    *) words="" ;;
  esac
  case "$command" in
@FLAGS@
  esac
  [[ "$command" != "$first" ]] && words=""
  if [[ "$cur" == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$cur")); return; fi
  case "$command" in
    @SESSION_COMMANDS@) words="$(@SESSION_IDS@)" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _exporter exporter
"""

ZSH: Final = """\
#compdef exporter
# zsh completion for exporter; load it with: source <(exporter completion zsh)
_exporter_sessions() {
  local -a ids
  ids=(${(f)"$(@SESSION_IDS@)"})
  _describe session ids
}
_exporter() {
  local -a commands subcommands specs
  local command
  commands=(
@COMMANDS@
  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  command="$words[2]"
  case "$command" in
@GROUPS@
  esac
  if (( $#subcommands )); then
    if (( CURRENT == 3 )); then _describe command subcommands; return; fi
    command="$command $words[3]"
    shift words; (( CURRENT-- ))
  fi
  case "$command" in
@SPECS@
  esac
  shift words; (( CURRENT-- ))
  _arguments -s $specs
}
compdef _exporter exporter
"""
