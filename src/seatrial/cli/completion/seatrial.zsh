#compdef seatrial
# zsh completion of seatrial
_seatrial() {
    local line word
    local -a plain open plain_text open_text
    for line in "${(@f)$(${~words[1]} --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        word="${line%%$'\t'*}"
        [[ -z "$word" ]] && continue
        if [[ "$word" == *[=/] ]]; then
            open+=("$word") open_text+=("$word  ${line#*$'\t'}")
        else
            plain+=("$word") plain_text+=("$word  ${line#*$'\t'}")
        fi
    done
    if (( $#plain + $#open == 0 )); then
        compset -P '*='
        _files
        return
    fi
    (( $#plain )) && compadd -Q -l -d plain_text -a plain
    (( $#open )) && compadd -Q -l -S '' -d open_text -a open
}
if [[ "$funcstack[1]" == _seatrial ]]; then
    _seatrial "$@"
else
    compdef _seatrial seatrial
fi
