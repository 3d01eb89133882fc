# shellcheck shell=bash
# What bash offers at TAB for weirfs, weir-mds, weir-osd, weir-dev, weir-sim and osdctl. The programs are asked: verbs, options and
# choices are those of --help. A TAB waits for no daemon, so names of classes, pools and OSDs are typed.

# The entries of one block of a help, without what goes on below them: _weir_block TITLE.
_weir_block() {
  awk -v title="$1:" '$0 == title { on = 1; next } /^$/ { on = 0 } on && /^  [^ ]/ { print substr($0, 3) }'
}

# The entry that explains an option: _weir_entry OPTION. `-o,--output ...` and `--fsck{space} ...` have such names, too.
_weir_entry() {
  awk -v option="$1" '{ names = $1; gsub(/[{][^}]*[}]/, "", names); count = split(names, name, ",")
                        for (i = 1; i <= count; ++i) if (name[i] == option) { print; exit } }'
}

# Whether what follows the option of this entry is its value: `--disk DISK ...`; not of `--force    ...`, `--fsck{space} ...`.
_weir_takes_value() {
  [[ $1 =~ ^[^\ {]+\ [^\ ] && ! $1 =~ ^[^\ ]+\ (Needs|Excludes): ]]
}

# What stands behind -o of weirfs, one word a line: _weir_mount_options WEIRFS.
_weir_mount_options() {
  local text word
  text=$("$1" --help 2>/dev/null | tr '\n' ' ')
  [[ $text == *'Options behind -o:'* ]] || return
  text=${text#*Options behind -o:}
  text=${text%%, and what mount(8)*}
  while [[ $text =~ \([^()]*\) ]]; do text=${text/"${BASH_REMATCH[0]}"/}; done
  IFS=, read -ra words <<<"$text"
  for word in "${words[@]}"; do
    word=${word//[[:space:]]/}
    case $word in
      '[no]'*) printf '%s\n' "${word#'[no]'}" "no${word#'[no]'}" ;;
      *=*'|'*) printf "${word%%=*}=%s\n" ${word#*=} ;;
      *=*) echo "${word%%=*}=" ;;
      *) echo "$word" ;;
    esac
  done
}

# What may be the value that an entry explains, one a line: _weir_values ENTRY VALUE; of the caller: program, words.
_weir_values() {
  local entry=$1 value=$2 kind list
  kind=${entry#* }
  kind=${kind%% *}
  if [[ $kind =~ \{(.*)\} ]]; then
    compgen -W "${BASH_REMATCH[1]//,/ }" -- "$value"
  elif [[ $entry == *\[true\] || $entry == *\[false\] ]]; then
    compgen -W 'true false' -- "$value"
  elif [[ $entry =~ trace,.*\ off ]]; then
    list=${BASH_REMATCH[0]/ or /,}
    compgen -W "${list//,/ }" -- "$value"
  elif [[ $kind == *'|'* ]]; then
    list=$(tr '|' '\n' <<<"${kind%%[\[@]*}" | grep -x '[a-z][a-z-]*')
    [[ $kind != *osd-NAME* ]] || list+=$'\n'$(_weir_osd_files)
    compgen -W "$list" -- "$value"
    [[ $kind != *DIR* ]] || compgen -d -- "$value"
    [[ $kind != *PATH* ]] || compgen -f -- "$value"
  elif [[ $kind == OPTIONS ]]; then
    list=weirfs
    [[ $program != */* ]] || list=${program%/*}/weirfs
    list=$(IFS='|'; _weir_mount_options "$list")
    compgen -P "${value%"${value##*,}"}" -W "$list" -- "${value##*,}"
  elif [[ $kind == DAEMON ]]; then
    list=$(_weir_daemons)
    compgen -W "$list" -- "$value"
  elif [[ $kind == ID && ${program##*/} == weir-sim ]]; then
    list=$("$program" list 2>/dev/null | awk 'NR > 1 { print $1 }')
    compgen -W "all quick $list" -- "$value"
  elif [[ $kind == DIR || $kind == MNT || $entry == *directory* ]]; then
    compgen -d -- "$value"
  elif [[ $kind == FILE || $kind == PATH || $kind == DISK || $kind == TEXT && $entry == *file* ]]; then
    compgen -f -- "$value"
  fi
}

# Of the cluster that --dir names on the command line; weir-dev knows them without asking anybody.
_weir_daemons() {
  local i
  for ((i = 1; i + 1 < ${#words[@]}; ++i)); do
    [[ ${words[i]} != --dir ]] || "$program" status --dir "${words[i + 1]}" 2>/dev/null | awk 'NR > 1 { print $1 }'
  done
}

# Of this machine, by their files; compgen takes one pair of the quotes away.
_weir_osd_files() {
  local file
  for file in "${WEIR_CONFIG_DIR:-/etc/weirfs}"/osd-*.toml; do
    file=${file##*/}
    [[ $file == 'osd-*.toml' ]] || printf '%q\n' "$(printf '%q' "${file%.toml}")"
  done
}

_weir() {
  local program=${1/#\~/$HOME} line=${COMP_LINE:0:COMP_POINT} token='' option='' value entry word help options may_be_path=yes
  local -a words verbs=() found=()
  # Not COMP_WORDS, which are cut at = and :.
  read -ra words <<<"$line"
  if [[ $line != *[[:space:]] ]]; then
    token=${words[-1]}
    unset 'words[-1]'
  fi
  help=$("$program" --help 2>/dev/null) || return
  options=$(_weir_block Options <<<"$help")
  for word in "${words[@]:1}"; do
    if [[ -n $option ]]; then
      option=''
    elif [[ $word == -* ]]; then
      ! _weir_takes_value "$(_weir_entry "$word" <<<"$options")" || option=$word
    elif _weir_block Subcommands <<<"$help" | grep -q "^$word "; then
      verbs+=("$word")
      help=$("$program" "${verbs[@]}" --help 2>/dev/null) || return
      options=$(_weir_block Options <<<"$help")$'\n'$options
    fi
  done
  value=$token
  if [[ -z $option && $token == --*=* ]]; then
    option=${token%%=*}
    value=${token#*=}
  fi
  if [[ -n $option ]]; then
    entry=$(_weir_entry "$option" <<<"$options")
    mapfile -t found < <(_weir_values "$entry" "$value")
  elif [[ $token == -* ]]; then
    may_be_path=''
    mapfile -t found < <(compgen -W "$(awk '{ gsub(/[{][^}]*[}]/, "", $1); gsub(",", " ", $1); print $1 }' <<<"$options")" -- "$token")
  elif word=$(_weir_block Subcommands <<<"$help") && [[ -n $word ]]; then
    may_be_path=''
    mapfile -t found < <(compgen -W "$(awk '{ print $1 }' <<<"$word")" -- "$token")
  elif word=$(_weir_block Positionals <<<"$help") && [[ -n $word ]]; then
    mapfile -t found < <(while read -r entry; do _weir_values "$entry" "$token"; done <<<"$word")
  elif [[ ${program##*/} == weirfs ]]; then
    mapfile -t found < <(compgen -d -- "$token") # its help does not list where it mounts
  fi
  # Bash puts in what stands behind the last = or :.
  local breaks=${COMP_WORDBREAKS//[^=:]/} behind=$token
  [[ -z $breaks ]] || behind=${token##*[$breaks]}
  found=("${found[@]/#/${token%"$value"}}")
  COMPREPLY=("${found[@]#"${token%"$behind"}"}")
  [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  [[ -n $may_be_path && -d ${COMPREPLY[0]} ]] && compopt -o filenames 2>/dev/null
  return 0
}
complete -F _weir weirfs weir-mds weir-osd weir-dev weir-sim osdctl
