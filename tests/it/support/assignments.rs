//! Every way to give a variable a value, and every way to have it read: pieces of
//! lines in which bash could be brought to evaluate a text. A fuzz target includes
//! this file.

/// What no line may run.
pub const CANARY: &str = "canary";

/// A text that runs [`CANARY`] where it is evaluated as an expression.
const PAYLOAD: &str = "'a[$(canary)]'";

/// The variables that bash documents, up to version 5.3, some that commands of a
/// run are given, and one that means nothing.
pub const NAMES: &str = "BASH BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS \
     BASH_COMMAND BASH_COMPAT BASH_ENV BASH_EXECUTION_STRING BASH_LINENO \
     BASH_LOADABLES_PATH BASH_MONOSECONDS BASH_REMATCH BASH_SOURCE BASH_SUBSHELL \
     BASH_TRAPSIG BASH_VERSINFO BASH_VERSION BASH_XTRACEFD CHILD_MAX COLUMNS COMPREPLY \
     COMP_CWORD COMP_KEY COMP_LINE COMP_POINT COMP_TYPE COMP_WORDBREAKS COMP_WORDS COPROC \
     COPROC_PID DIRSTACK EMACS ENV EPOCHREALTIME EPOCHSECONDS EUID EXECIGNORE FCEDIT \
     FIGNORE FUNCNAME FUNCNEST GLOBIGNORE GLOBSORT GROUPS HISTCMD HISTCONTROL HISTFILE \
     HISTFILESIZE HISTIGNORE HISTSIZE HISTTIMEFORMAT HOME HOSTFILE HOSTNAME HOSTTYPE IFS \
     IGNOREEOF INPUTRC INSIDE_EMACS LANG LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_NUMERIC \
     LC_TIME LINENO LINES MACHTYPE MAIL MAILCHECK MAILPATH MAPFILE OLDPWD OPTARG OPTERR \
     OPTIND OSTYPE PATH PIPESTATUS POSIXLY_CORRECT PPID PROMPT_COMMAND PROMPT_DIRTRIM PS0 \
     PS1 PS2 PS3 PS4 PWD RANDOM READLINE_ARGUMENT READLINE_LINE READLINE_MARK \
     READLINE_POINT REPLY SECONDS SHELL SHELLOPTS SHLVL SRANDOM SSH_CLIENT TERM TERMCAP \
     TERMINFO TEXTDOMAIN TEXTDOMAINDIR TIMEFORMAT TMOUT TMPDIR TZ UID _ auto_resume \
     histchars ignoreeof PAGER EDITOR x";

/// Assignments of `VALUE` to `NAME`.
pub const FORMS: &[&str] = &[
    "NAME=VALUE",
    "NAME+=VALUE",
    "NAME[0]=VALUE",
    "NAME[0]+=VALUE",
    "NAME[1]=VALUE",
    "NAME=(VALUE)",
    "NAME=(1 VALUE)",
    "NAME+=(VALUE)",
    "NAME=([0]=VALUE)",
    "declare -A NAME; NAME[k]=VALUE",
    "declare -A NAME=([k]=VALUE)",
    "declare -a NAME=(VALUE)",
    "declare NAME=VALUE",
    "declare -g NAME=VALUE",
    "declare -x NAME=VALUE",
    "declare -i NAME=VALUE",
    "declare -i NAME; NAME=VALUE",
    "declare -l NAME=VALUE",
    "declare -n r=NAME; r=VALUE",
    "declare \"NAME\"=VALUE",
    "n=NAME; declare $n=VALUE",
    "n=NAME; declare \"$n\"=VALUE",
    "typeset NAME=VALUE",
    "export NAME=VALUE",
    "export NAME; NAME=VALUE",
    "readonly NAME=VALUE",
    "f() { local NAME=VALUE; }; f",
    "f() { local NAME=(VALUE); }; f",
    "f() { local NAME; NAME=VALUE; }; f",
    "f() { local -n r=$1; r=VALUE; }; f NAME",
    "f() { declare -g NAME=VALUE; }; f",
    "for NAME in VALUE; do :; done",
    "for NAME in 1 VALUE; do :; done",
    "set -- VALUE; for NAME; do :; done",
    "select NAME in VALUE; do break; done <<< 1",
    "read NAME <<< VALUE",
    "read -r NAME <<< VALUE",
    "read -r q NAME <<< 1\\ VALUE",
    "read -a NAME <<< VALUE",
    "read -ra NAME <<< VALUE",
    "read -d '' NAME <<< VALUE",
    "read -N 13 NAME <<< VALUE",
    "IFS= read -r NAME <<< VALUE",
    "n=NAME; read $n <<< VALUE",
    "read <<< VALUE; NAME=$REPLY",
    "while read NAME; do :; done <<< VALUE",
    "printf %s VALUE | { read NAME; }",
    "mapfile NAME <<< VALUE",
    "mapfile -t NAME <<< VALUE",
    "mapfile -O 1 NAME <<< VALUE",
    "readarray -t NAME <<< VALUE",
    "printf -v NAME %s VALUE",
    "printf -vNAME %s VALUE",
    "printf -v NAME[0] %s VALUE",
    "getopts a: NAME -a VALUE",
    "getopts a: q -a VALUE; NAME=$OPTARG",
    ": ${NAME:=VALUE}",
    ": ${NAME=VALUE}",
    "unset NAME; : ${NAME:=VALUE}",
    "unset NAME; NAME=VALUE",
    "NAME=VALUE :",
    "NAME=VALUE true",
    "NAME=VALUE eval :",
    "NAME=VALUE export q=1",
    "f() { :; }; NAME=VALUE f",
    "f() { NAME=$1; }; f VALUE",
    "env NAME=VALUE true",
    "export NAME=VALUE; bash -c ': $NAME'",
    "NAME=VALUE bash -c ': $NAME'",
    "bash -c 'NAME=$1' x VALUE",
    "eval NAME=VALUE",
    "eval 'NAME=$1'",
    "x=VALUE; NAME=$x",
    "x=VALUE; NAME=${x}",
    "x=VALUE; NAME=$(echo $x)",
    "coproc NAME { :; }; wait",
    ": & wait -p NAME; NAME=VALUE",
    "NAME=VALUE; : {NAME}>/dev/null",
    "NAME=VALUE; exec {NAME}>&-",
    "command export NAME=VALUE",
    "builtin export NAME=VALUE",
    "command read NAME <<< VALUE",
    "command -p declare NAME=VALUE",
    "trap NAME=VALUE EXIT",
    "if NAME=VALUE; then :; fi",
    "case x in *) NAME=VALUE;; esac",
    "[[ VALUE =~ .+ ]]; NAME=${BASH_REMATCH[0]}",
    "[[ VALUE =~ .+ ]]; : NAME",
    ": VALUE; : NAME",
    "set -- VALUE; NAME=$1",
    "set -- VALUE; NAME=(\"$@\")",
    "cat=VALUE false=VALUE true=VALUE",
];

/// Ways to have `NAME` read.
pub const USES: &[&str] = &[
    ":",
    ": $NAME \"$NAME\" ${NAME} ${#NAME} ${NAME[@]} ${NAME[0]}",
    "((NAME))",
    "((q=NAME))",
    "((NAME++))",
    "((NAME[0]))",
    "((q[NAME]=1))",
    "((1 ? NAME : 0))",
    "let NAME",
    "let q=NAME+1",
    ": $((NAME))",
    ": $(($NAME))",
    ": $((${NAME}))",
    ": $((${NAME[0]}))",
    ": ${q[NAME]}",
    ": ${q[$NAME]}",
    ": ${q:NAME}",
    "set -- 1; : ${@:NAME}",
    "q[NAME]=1",
    "q[$NAME]=1",
    "q=([NAME]=1)",
    "q=([$NAME]=1)",
    "declare q[NAME]=1",
    "unset q[NAME]",
    "unset \"$NAME\"",
    "read q[NAME] <<< 1",
    "read \"$NAME\" <<< 1",
    "printf -v q[NAME] 1",
    "printf -v \"$NAME\" 1",
    ": {q[NAME]}>/dev/null",
    ": {q[NAME]}<&-",
    "exec {q[NAME]}>/dev/null",
    "{ :; } {q[NAME]}>/dev/null",
    "[[ NAME -eq 1 ]]",
    "[[ $NAME -eq 1 ]]",
    "[[ 1 -lt $NAME ]]",
    "[[ -v NAME ]]",
    "[[ -v $NAME ]]",
    "[[ -v q[NAME] ]]",
    "[ -v \"$NAME\" ]",
    "[ -v q[NAME] ]",
    "read q <<< v; [ \"-$q\" \"$NAME\" ]",
    "read q <<< v; [ \"-$q\" 'a[$(canary)]' ]",
    "read q <<< v; test \"-${q}\" \"q[NAME]\"",
    "[ \"$NAME\" -eq 1 ]",
    "for ((NAME; 0; )); do :; done",
    "for ((q=NAME; q<1; q++)); do :; done",
    "export \"$NAME=1\"",
    "mapfile \"$NAME\" <<< 1",
    "getopts a \"$NAME\"",
    "wait -n -p \"$NAME\"",
    "set -x; : $NAME",
    "time : $NAME",
    "select q in 1; do break; done <<< 1",
    "exit \"$NAME\"",
    "shift $((NAME))",
    "shift \"$NAME\"",
    "f() { return \"$NAME\"; }; f",
    "umask \"$NAME\"",
    "read -t \"$NAME\" q <<< 1",
    "mapfile -n \"$NAME\" q <<< 1",
    "cd \"$NAME\"; :",
    "q=NAME; ((q))",
    "(: $((NAME)))",
    ": $(: $((NAME)))",
    ": <<< $((NAME))",
    ": <<E\n$((NAME))\nE\n",
    "case $((NAME)) in 1) :;; esac",
];

/// A line that assigns to a variable, and then has it read.
pub fn line(form: &str, usage: &str, name: &str) -> String {
    format!("{form}; {usage}")
        .replace("VALUE", PAYLOAD)
        .replace("NAME", name)
}
