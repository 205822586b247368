# Comparing versions such as v1.10.2 or 2.0.0-rc.1.

# The numbers of a version, without the leading `v` and what follows a dash.
version_core() {
  local core=${1#v}
  echo "${core%%-*}"
}

# What follows the dash, or nothing for a final release.
version_suffix() {
  case $1 in
    *-*) echo "${1#*-}" ;;
  esac
}

# version_compare A B: prints -1, 0 or 1 as A is older than, as old as, or
# newer than B. Missing numbers count as 0; a release is newer than its
# candidates.
version_compare() {
  local -a left right
  IFS=. read -ra left <<<"$(version_core "$1")"
  IFS=. read -ra right <<<"$(version_core "$2")"
  local i a b
  for i in 0 1 2; do
    a=${left[i]:-0} b=${right[i]:-0}
    if [[ $a < $b ]]; then
      echo -1
      return
    elif [[ $a > $b ]]; then
      echo 1
      return
    fi
  done

  a=$(version_suffix "$1") b=$(version_suffix "$2")
  if [[ $a == "$b" ]]; then
    echo 0
  elif [[ -z $a ]]; then
    echo 1
  elif [[ -z $b || $a < $b ]]; then
    echo -1
  else
    echo 1
  fi
}
