# What *.install files are made of: debhelper runs those that are programs, and takes what they print.

files() { # LINE...
  printf '%s\n' "$@"
}

# Of the man pages and completions those of PROGRAMS; there are no pages where scdoc was not found.
made_for() { # PROGRAM...
  for program in "$@"; do
    for file in debian/tmp/usr/share/man/man?/"$program".? debian/tmp/usr/share/bash-completion/completions/"$program" \
      debian/tmp/usr/share/zsh/vendor-completions/_"$program"; do
      [ ! -e "$file" ] || files "${file#debian/tmp/}"
    done
  done
}
