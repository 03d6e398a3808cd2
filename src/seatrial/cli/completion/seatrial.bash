# bash completion of seatrial
_seatrial() {
    local line="${COMP_LINE:0:COMP_POINT}" candidate lead=""
    local -a words
    read -ra words <<<"$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    local current="${words[-1]}"
    # bash replaces only what follows the last = or : of a word
    [[ "$current" == *[=:]* ]] && lead="${current%"${current##*[=:]}"}"
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        COMPREPLY+=("${candidate#"$lead"}")
    done < <("${words[0]/#\~/$HOME}" --complete "${words[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *[=/] ]] && compopt -o nospace
    return 0
}
complete -o default -o bashdefault -F _seatrial seatrial
